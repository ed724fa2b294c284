"""keras: two models on its torch back end: fitted, evaluated, saved, loaded, and its own ops."""

import os
import tempfile

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch
from keras import layers

keras.utils.set_random_seed(0)
images = np.random.randn(48, 8, 8, 1).astype(np.float32)
labels = np.random.randint(0, 3, 48)
model = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        layers.Conv2D(4, 3, activation="relu"),
        layers.BatchNormalization(),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dropout(0.2),
        layers.Dense(3, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
past = model.fit(images, labels, epochs=2, batch_size=16, verbose=0, validation_split=0.25)
print(past.history)
print(model.predict(images[:2], verbose=0).tolist(), model.evaluate(images, labels, verbose=0))
with tempfile.TemporaryDirectory() as folder:
    model.save(f"{folder}/model.keras")
    loaded = keras.models.load_model(f"{folder}/model.keras")
print(np.allclose(loaded.predict(images[:2], verbose=0), model.predict(images[:2], verbose=0)))

words = keras.Input((6,), dtype="int32")
embedded = layers.Embedding(10, 8)(words)
attended = layers.LayerNormalization()(
    embedded + layers.MultiHeadAttention(2, 4)(embedded, embedded)
)
both = [layers.Bidirectional(layers.LSTM(4))(attended), layers.GRU(4)(attended)]
model = keras.Model(words, layers.Dense(1)(layers.Concatenate()(both)))
model.compile(keras.optimizers.AdamW(1e-2), "mse")
texts = np.random.randint(0, 10, (32, 6))
print(model.fit(texts, texts.sum(1).astype(np.float32) / 30, epochs=2, verbose=0).history)

x = keras.Variable(np.arange(3.0))
loss = keras.ops.sum(keras.ops.softmax(x) * keras.ops.arange(3.0))
loss.backward()
print(loss.item(), x.value.grad, isinstance(x.value, torch.nn.Parameter))
print(keras.ops.top_k(keras.ops.arange(5), 2)[0], keras.ops.logsumexp(x).item())
