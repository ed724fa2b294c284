"""diffusers: a U-Net taught to remove noise, eight schedulers, a pipeline, an autoencoder."""

import tempfile

import diffusers
import torch
from torch import nn

torch.manual_seed(0)
unet = diffusers.UNet2DModel(
    sample_size=16,
    layers_per_block=1,
    block_out_channels=(8, 16),
    norm_num_groups=4,
    attention_head_dim=4,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)
noisy = diffusers.DDPMScheduler(num_train_timesteps=20)
optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-3)
images = torch.rand(4, 3, 16, 16)
for _ in range(3):
    noise, steps = torch.randn_like(images), torch.randint(0, 20, (4,))
    guess = unet(noisy.add_noise(images, noise, steps), steps).sample
    loss = nn.functional.mse_loss(guess, noise)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(unet.parameters(), 1.0)
    optimizer.step()
    print(loss.item(), norm.item())

unet.eval()
for (
    name
) in "DDPM DDIM PNDM EulerDiscrete EulerAncestralDiscrete HeunDiscrete UniPCMultistep LCM".split():
    scheduler = getattr(diffusers, f"{name}Scheduler")()
    scheduler.set_timesteps(4)
    torch.manual_seed(1)
    x = torch.randn(1, 3, 16, 16) * scheduler.init_noise_sigma
    with torch.no_grad():
        for step in scheduler.timesteps:
            guess = unet(scheduler.scale_model_input(x, step), step).sample
            x = scheduler.step(guess, step, x).prev_sample
    print(name, x.mean().item(), x.std().item())

with tempfile.TemporaryDirectory() as folder:
    diffusers.DDIMPipeline(unet, diffusers.DDIMScheduler()).save_pretrained(folder)
    pipeline = diffusers.DDIMPipeline.from_pretrained(folder)
    pipeline.set_progress_bar_config(disable=True)
    seeded = torch.Generator().manual_seed(2)
    drawn = pipeline(generator=seeded, num_inference_steps=3, output_type="np").images
    print(drawn.shape, drawn.mean())

torch.manual_seed(3)
vae = diffusers.AutoencoderKL(
    down_block_types=("DownEncoderBlock2D",) * 2,
    up_block_types=("UpDecoderBlock2D",) * 2,
    block_out_channels=(8, 16),
    norm_num_groups=4,
)
latent = vae.encode(images).latent_dist
loss = nn.functional.mse_loss(vae.decode(latent.sample()).sample, images) + latent.kl().mean()
loss.backward()
print(loss.item(), vae.encoder.conv_in.weight.grad.abs().sum().item())
