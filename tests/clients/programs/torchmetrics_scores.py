"""torchmetrics: metrics as modules and as functions, over batches."""

import torch
import torchmetrics
from torchmetrics import functional as M

torch.manual_seed(0)
scores = torch.randn(24, 4).softmax(-1)
labels = torch.arange(24) % 4
metrics = torchmetrics.MetricCollection(
    {
        "accuracy": torchmetrics.classification.MulticlassAccuracy(4),
        "f1": torchmetrics.classification.MulticlassF1Score(4),
        "auroc": torchmetrics.classification.MulticlassAUROC(4),
        "confusion": torchmetrics.classification.MulticlassConfusionMatrix(4),
        "calibration": torchmetrics.classification.MulticlassCalibrationError(4),
    }
)
for part in range(3):
    metrics.update(scores[part * 8 :][:8], labels[part * 8 :][:8])
print({name: value.tolist() for name, value in metrics.compute().items()})
a, b = torch.randn(50), torch.randn(50)
print(
    M.pearson_corrcoef(a, b),
    M.spearman_corrcoef(a, b),
    M.r2_score(a, b),
    M.mean_squared_error(a, b),
)
x, y = torch.rand(2, 3, 32, 32), torch.rand(2, 3, 32, 32)
print(
    M.image.structural_similarity_index_measure(x, y),
    M.image.peak_signal_noise_ratio(x, y, data_range=1.0),
)
