"""kornia: colours, filters, geometry and losses of images, with gradients."""

import kornia
import torch

torch.manual_seed(0)
image = torch.rand(1, 3, 24, 24, requires_grad=True)
for name, value in {
    "gray": kornia.color.rgb_to_grayscale(image),
    "hsv": kornia.color.rgb_to_hsv(image),
    "lab": kornia.color.rgb_to_lab(image),
    "blur": kornia.filters.gaussian_blur2d(image, (5, 5), (1.5, 1.5)),
    "sobel": kornia.filters.sobel(image),
    "median": kornia.filters.median_blur(image, (3, 3)),
    "canny": kornia.filters.canny(image)[0],
    "rotate": kornia.geometry.transform.rotate(image, torch.tensor([30.0])),
    "pyramid": kornia.geometry.transform.pyrdown(image),
    "harris": kornia.feature.harris_response(image, torch.tensor(0.04)),
    "ssim": kornia.metrics.ssim(image, image.flip(-1), 5),
    "dice": kornia.losses.dice_loss(image, torch.zeros(1, 24, 24).long()),
    "tv": kornia.losses.total_variation(image),
}.items():
    image.grad = None
    value.mean().backward()
    print(name, value.mean().item(), image.grad.norm().item())
