"""U-Net. Ronneberger et al., "U-Net" (MICCAI 2015), Figure 1, with padding and batch norm."""
import torch
from torch import nn


def double_conv(fan_in, fan_out):
    layers = []
    for channels in (fan_in, fan_out):
        layers += [nn.Conv2d(channels, fan_out, 3, padding=1, bias=False), nn.BatchNorm2d(fan_out), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, width=32, classes=1):
        """`width`: channels at the top; each of the four levels below has twice as many."""
        super().__init__()
        widths = [width << level for level in range(5)]
        self.down = nn.ModuleList(double_conv(i, o) for i, o in zip([3] + widths, widths))
        self.pool = nn.MaxPool2d(2)
        self.grow = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in reversed(widths[:-1]))
        self.up = nn.ModuleList(double_conv(2 * w, w) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):  # [N, 3, H, W]
        skips = []
        for level in self.down:
            x = level(self.pool(x) if skips else x)
            skips.append(x)
        for grow, level, skip in zip(self.grow, self.up, reversed(skips[:-1])):
            x = grow(x)
            rows, columns = skip.size(2) - x.size(2), skip.size(3) - x.size(3)  # where 16 does not divide an image
            x = nn.functional.pad(x, [columns // 2, columns - columns // 2, rows // 2, rows - rows // 2])
            x = level(torch.cat([skip, x], dim=1))
        return torch.sigmoid(self.head(x))
