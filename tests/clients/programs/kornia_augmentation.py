"""kornia: random augmentations of images, masks, points and boxes, with gradients."""

import kornia
import kornia.augmentation as K
import torch

torch.manual_seed(0)
image = torch.rand(2, 3, 32, 32, requires_grad=True)
for augmentation in (
    K.RandomRotation(30.0, p=1.0),
    K.RandomAffine(15.0, (0.1, 0.1), (0.8, 1.2), p=1.0),
    K.RandomPerspective(0.3, p=1.0),
    K.ColorJiggle(0.2, 0.2, 0.2, 0.1, p=1.0),
    K.RandomErasing(p=1.0),
    K.RandomGaussianBlur((3, 3), (0.5, 1.0), p=1.0),
    K.RandomResizedCrop((16, 16)),
    K.RandomSolarize(p=1.0),
    K.RandomSharpness(p=1.0),
    K.RandomEqualize(p=1.0),
    K.RandomThinPlateSpline(p=1.0),
    K.RandomElasticTransform(p=1.0),
    K.RandomMotionBlur(3, 35.0, 0.5, p=1.0),
    K.RandomAutoContrast(p=1.0),
    K.RandomClahe(p=1.0),
):
    torch.manual_seed(1)
    image.grad = None
    changed = augmentation(image)
    (changed + image.mean()).square().sum().backward()
    print(type(augmentation).__name__, changed.shape, changed.mean().item(), image.grad.norm())

all_alike = K.AugmentationSequential(
    K.RandomAffine(20.0, p=1.0),
    K.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0),
    K.RandomHorizontalFlip(p=0.5),
    data_keys=["input", "mask", "keypoints", "bbox_xyxy"],
)
torch.manual_seed(2)
mask, points = (image[:, :1] > 0.5).float(), torch.rand(2, 4, 2) * 31
boxes = torch.tensor([[[2.0, 3.0, 10.0, 12.0]], [[1.0, 1.0, 5.0, 9.0]]])
_, mask, points, boxes = all_alike(image, mask, points, boxes)
print(mask.mean(), points, boxes)
mixed, labels = K.RandomMixUpV2(p=1.0, data_keys=["input", "class"])(image, torch.tensor([0, 1]))
print(mixed.mean(), labels)
for name, value in {
    "bilateral": kornia.filters.bilateral_blur(image, (3, 3), 0.1, (1.0, 1.0)),
    "dilation": kornia.morphology.dilation(image, torch.ones(3, 3)),
    "hardnet": kornia.feature.HardNet(False)(image[:, :1]).square(),
    "histogram": kornia.enhance.image_histogram2d(image, 0.0, 1.0, 16)[0],
    "distances": kornia.contrib.distance_transform((image[:, :1] > 0.9).float()),
    "focal": kornia.losses.focal_loss(image, torch.zeros(2, 32, 32).long(), 0.5, reduction="mean"),
}.items():
    print(name, value.shape, value.mean())
