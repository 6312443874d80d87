"""RedNet-50. Li et al., "Involution: Inverting the Inherence of Convolution for Visual Recognition" (CVPR 2021):
ResNet-50 whose 3x3 convolutions are 7x7 involutions of 16 channels a group, Algorithm 1 with Unfold as in the paper."""
import torch
from torch import nn
from torch.nn import functional


class Involution(nn.Module):
    def __init__(self, channels, kernel, stride=1, reduction=4, group_channels=16):
        super().__init__()
        self.kernel, self.stride, self.group_channels = kernel, stride, group_channels
        self.groups = channels // group_channels
        self.reduce = nn.Sequential(nn.Conv2d(channels, channels // reduction, 1, bias=False),
                                    nn.BatchNorm2d(channels // reduction), nn.ReLU())
        self.span = nn.Conv2d(channels // reduction, kernel * kernel * self.groups, 1)
        with torch.no_grad():  # untrained, the product of two activations would grow from block to block
            self.span.weight.mul_(0.1)
            self.span.bias.fill_(1 / kernel)

    def forward(self, x):
        weight = self.span(self.reduce(functional.avg_pool2d(x, self.stride) if self.stride > 1 else x))
        batch, _, height, width = weight.shape
        weight = weight.view(batch, self.groups, 1, self.kernel**2, height, width)
        windows = functional.unfold(x, self.kernel, padding=self.kernel // 2, stride=self.stride)
        windows = windows.view(batch, self.groups, self.group_channels, self.kernel**2, height, width)
        return (weight * windows).sum(dim=3).view(batch, -1, height, width)


def normed(layer, channels):
    return [layer, nn.BatchNorm2d(channels)]


class Bottleneck(nn.Module):
    def __init__(self, fan_in, hidden, stride):
        super().__init__()
        fan_out = 4 * hidden
        self.body = nn.Sequential(*normed(nn.Conv2d(fan_in, hidden, 1, bias=False), hidden), nn.ReLU(),
                                  *normed(Involution(hidden, 7, stride), hidden), nn.ReLU(),
                                  *normed(nn.Conv2d(hidden, fan_out, 1, bias=False), fan_out))
        self.short = nn.Identity()
        if stride > 1 or fan_in != fan_out:
            pool = [nn.AvgPool2d(stride)] if stride > 1 else []
            self.short = nn.Sequential(*pool, *normed(nn.Conv2d(fan_in, fan_out, 1, bias=False), fan_out))

    def forward(self, x):
        return torch.relu(self.body(x) + self.short(x))


class RedNet(nn.Module):
    def __init__(self, depths=(3, 4, 6, 3), classes=1000):
        super().__init__()
        layers = [*normed(nn.Conv2d(3, 32, 3, 2, 1, bias=False), 32), nn.ReLU(),
                  *normed(Involution(32, 3), 32), nn.ReLU(),
                  *normed(nn.Conv2d(32, 64, 3, padding=1, bias=False), 64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        fan_in = 64
        for stage, depth in enumerate(depths):
            hidden = 64 << stage
            for block in range(depth):
                layers.append(Bottleneck(fan_in, hidden, 2 if stage and not block else 1))
                fan_in = 4 * hidden
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(fan_in, classes)

    def forward(self, x):  # [N, 3, H, W]
        return self.head(self.features(x).flatten(1))
