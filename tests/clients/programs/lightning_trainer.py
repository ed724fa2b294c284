"""lightning: a module with a trainer, a checkpoint, and the module loaded from it."""

import logging
import tempfile
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Classifier(L.LightningModule):
    def __init__(self, width: int = 8, lr: float = 0.05):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 3))
        self.losses = []

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.losses.append(loss.item())
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val", nn.functional.cross_entropy(self.net(x), y))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]


L.seed_everything(0, verbose=False)
data = TensorDataset(torch.randn(60, 4), torch.arange(60) % 3)
model = Classifier()
with tempfile.TemporaryDirectory() as folder:
    trainer = L.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        gradient_clip_val=0.5,
    )
    trainer.fit(model, DataLoader(data, 20, shuffle=True), DataLoader(data, 30))
    print(model.losses, trainer.callback_metrics["val"].item())
    trainer.save_checkpoint(f"{folder}/model.ckpt")
    again = Classifier.load_from_checkpoint(f"{folder}/model.ckpt")
    print(again.net(torch.ones(1, 4)), again.hparams.width)
