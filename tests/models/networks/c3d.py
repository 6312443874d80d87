"""C3D. Tran et al., "Learning Spatiotemporal Features with 3D Convolutional Networks" (ICCV 2015), Figure 3: eight
convolutions of 3x3x3, five poolings, 4096 units in two layers; 487 classes of Sports-1M."""
import torch
from torch import nn


class C3d(nn.Module):
    def __init__(self, classes=487):
        super().__init__()
        layers, fan_in = [], 3
        for stage, widths in enumerate(((64,), (128,), (256, 256), (512, 512), (512, 512))):
            for width in widths:
                layers += [nn.Conv3d(fan_in, width, 3, padding=1), nn.ReLU()]
                fan_in = width
            first, last = stage == 0, stage == 4
            layers.append(nn.MaxPool3d((1, 2, 2) if first else 2, padding=(0, 1, 1) if last else 0))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Linear(8192, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(),
                                        nn.Linear(4096, classes))

    def forward(self, x):  # [N, 3, 16, 112, 112]
        return torch.softmax(self.classifier(self.features(x).flatten(1)), dim=1)
