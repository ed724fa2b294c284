"""torchvision: resnet18 forward and backward, transforms of images, boxes."""

import torch
import torchvision
from torchvision import models, transforms
from torchvision.transforms import functional as TF
from torchvision.transforms import v2

torch.manual_seed(0)
model = models.resnet18(num_classes=6)
images = torch.randn(2, 3, 64, 64)
loss = torch.nn.functional.cross_entropy(model(images), torch.tensor([0, 4]))
loss.backward()
print("resnet18", loss.item(), model.conv1.weight.grad.norm().item())
print(models.mobilenet_v3_small(num_classes=3).eval()(images).shape)

picture = torch.rand(3, 40, 30)
chain = transforms.Compose(
    [
        transforms.RandomHorizontalFlip(),
        transforms.RandomCrop(24),
        transforms.ColorJitter(0.2, 0.2, 0.2),
        transforms.Normalize([0.5] * 3, [0.2] * 3),
    ]
)
print("transforms", chain(picture).mean().item())
print("resize", TF.resize(picture, [16, 16], antialias=True).mean().item())
print("rotate", TF.rotate(picture, 30.0).mean().item())
print("blur", TF.gaussian_blur(picture, [3, 3]).std().item())
print(
    "v2",
    v2.Compose([v2.RandomResizedCrop(16, antialias=True), v2.RandomErasing(1.0)])(picture)
    .mean()
    .item(),
)
print(torchvision.utils.make_grid(torch.rand(4, 3, 5, 5)).shape)
boxes = torch.tensor([[0.0, 0.0, 10.0, 10.0], [2.0, 2.0, 9.0, 12.0]])
print(torchvision.ops.box_iou(boxes, boxes), torchvision.ops.box_area(boxes))
