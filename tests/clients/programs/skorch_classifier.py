"""skorch: a network as an estimator of scikit-learn, in a pipeline and a grid search."""

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier
from torch import nn

torch.manual_seed(0)
x, y = make_classification(200, 10, random_state=0)
x, y = x.astype(np.float32), y.astype(np.int64)


class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(10, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, 2)
        )

    def forward(self, x):
        return self.body(x)


net = NeuralNetClassifier(
    Net,
    max_epochs=3,
    lr=0.1,
    criterion=nn.CrossEntropyLoss,
    verbose=0,
    iterator_train__shuffle=True,
)
pipe = Pipeline([("scale", StandardScaler()), ("net", net)])
pipe.fit(x, y)
print(pipe.predict_proba(x[:3]), [each["train_loss"] for each in pipe["net"].history])
search = GridSearchCV(net, {"module__width": [4, 8]}, cv=2, scoring="accuracy", refit=False)
torch.manual_seed(1)
search.fit(x, y)
print(search.best_params_, search.cv_results_["mean_test_score"])
