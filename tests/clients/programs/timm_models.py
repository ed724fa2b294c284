"""timm: a vision transformer, a ResNet and its optimizers, forward and backward."""

import timm
import timm.optim
import torch

torch.manual_seed(0)
images = torch.randn(2, 3, 32, 32)
labels = torch.tensor([1, 3])

vit = timm.create_model(
    "vit_tiny_patch16_224",
    img_size=32,
    patch_size=8,
    embed_dim=48,
    depth=2,
    num_heads=3,
    num_classes=5,
)
loss = torch.nn.functional.cross_entropy(vit(images), labels)
loss.backward()
print("vit", loss.item(), vit.patch_embed.proj.weight.grad.norm().item())

resnet = timm.create_model("resnet10t", num_classes=5)
loss = torch.nn.functional.cross_entropy(resnet(images), labels)
loss.backward()
print("resnet", loss.item(), resnet.fc.weight.grad.norm().item())
resnet.eval()
print([each.shape for each in timm.create_model("resnet10t", features_only=True)(images)])

for name in ("sgd", "adamw", "lamb", "lion", "adafactor", "nadamw", "madgrad", "rmsproptf"):
    torch.manual_seed(1)
    model = torch.nn.Linear(6, 3)
    optimizer = timm.optim.create_optimizer_v2(model, opt=name, lr=1e-2, weight_decay=1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(4, 6)).pow(2).sum().backward()
        optimizer.step()
    print(name, model.weight.sum().item())
