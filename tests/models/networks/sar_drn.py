"""SAR-DRN. Zhang et al., "Learning a Dilated Residual Network for SAR Image Despeckling" (Remote Sensing 2018),
Figure 4: seven convolutions dilated by 1, 2, 3, 4, 3, 2, 1, two skips, the noise subtracted."""
import torch
from torch import nn


class SarDrn(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        fans = [1] + [width] * 6 + [1]
        self.convs = nn.ModuleList(nn.Conv2d(fans[i], fans[i + 1], 3, padding=d, dilation=d)
                                   for i, d in enumerate((1, 2, 3, 4, 3, 2, 1)))

    def forward(self, image):  # [N, 1, H, W]
        first = torch.relu(self.convs[0](image))
        third = torch.relu(self.convs[2](torch.relu(self.convs[1](first)))) + first
        fourth = torch.relu(self.convs[3](third))
        sixth = torch.relu(self.convs[5](torch.relu(self.convs[4](fourth)))) + fourth
        return image - self.convs[6](sixth)
