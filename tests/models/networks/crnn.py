"""CRNN. Shi et al., "An End-to-End Trainable Neural Network for Image-based Sequence Recognition" (TPAMI 2017),
Table 1."""
import torch
from torch import nn


class Crnn(nn.Module):
    def __init__(self, labels=37, hidden=256):
        super().__init__()

        def conv(fan_in, fan_out, norm=False, kernel=3, padding=1):
            return [nn.Conv2d(fan_in, fan_out, kernel, padding=padding), *([nn.BatchNorm2d(fan_out)] if norm else []),
                    nn.ReLU()]
        self.conv = nn.Sequential(*conv(1, 64), nn.MaxPool2d(2), *conv(64, 128), nn.MaxPool2d(2), *conv(128, 256),
                                  *conv(256, 256), nn.MaxPool2d((2, 2), (2, 1), (0, 1)), *conv(256, 512, True),
                                  *conv(512, 512, True), nn.MaxPool2d((2, 2), (2, 1), (0, 1)),
                                  *conv(512, 512, kernel=2, padding=0))
        self.recurrent = nn.LSTM(512, hidden, num_layers=2, bidirectional=True)
        self.head = nn.Linear(2 * hidden, labels)

    def forward(self, x):  # [N, 1, 32, W] -> [T, N, labels]
        sequence, _ = self.recurrent(self.conv(x).squeeze(2).permute(2, 0, 1))
        return torch.log_softmax(self.head(sequence), dim=2)
