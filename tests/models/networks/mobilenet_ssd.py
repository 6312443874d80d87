"""MobileNetV1 (Howard et al., 2017, Table 1) below SSD300 (Liu et al., ECCV 2016): six feature maps, six boxes at every
place, 3000 boxes decoded from their priors; no suppression. Classes of Pascal VOC."""
import math

import torch
from torch import nn


def separable(fan_in, fan_out, stride=1):
    def block(channels, width, kernel, step, groups):
        return [nn.Conv2d(channels, width, kernel, step, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(width),
                nn.ReLU()]
    return nn.Sequential(*block(fan_in, fan_in, 3, stride, fan_in), *block(fan_in, fan_out, 1, 1, 1))


def extra(fan_in, hidden, fan_out):
    return nn.Sequential(nn.Conv2d(fan_in, hidden, 1), nn.ReLU(), nn.Conv2d(hidden, fan_out, 3, 2, 1), nn.ReLU())


def priors(sizes):
    """[boxes, 4], each (centre x, centre y, width, height) in parts of the image; section 2.2 of SSD."""
    scales = [0.2 + 0.15 * k for k in range(len(sizes) + 1)]
    boxes = []
    for size, scale, larger in zip(sizes, scales, scales[1:]):
        shapes = [(scale, scale), (math.sqrt(scale * larger),) * 2]
        for ratio in (2.0, 3.0):
            root = math.sqrt(ratio)
            shapes += [(scale * root, scale / root), (scale / root, scale * root)]
        for y in range(size):
            for x in range(size):
                boxes += [((x + 0.5) / size, (y + 0.5) / size, w, h) for w, h in shapes]
    return torch.tensor(boxes).clamp(0, 1)


class MobileNetV1Ssd(nn.Module):
    def __init__(self, classes=21):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU())
        self.trunk = nn.Sequential(separable(32, 64), separable(64, 128, 2), separable(128, 128),
                                   separable(128, 256, 2), separable(256, 256), separable(256, 512, 2),
                                   *(separable(512, 512) for _ in range(5)))
        self.top = nn.Sequential(separable(512, 1024, 2), separable(1024, 1024))
        self.extras = nn.ModuleList([extra(1024, 256, 512), extra(512, 128, 256), extra(256, 128, 256),
                                     extra(256, 128, 256)])
        widths = (512, 1024, 512, 256, 256, 256)
        self.classes = nn.ModuleList(nn.Conv2d(w, 6 * classes, 3, padding=1) for w in widths)
        self.boxes = nn.ModuleList(nn.Conv2d(w, 6 * 4, 3, padding=1) for w in widths)
        self.register_buffer("priors", priors((19, 10, 5, 3, 2, 1)))
        self.class_count = classes

    def forward(self, x):  # [N, 3, 300, 300] -> scores [N, 3000, classes], corners of boxes [N, 3000, 4]
        x = self.trunk(self.stem(x))
        maps = [x, self.top(x)]
        for layer in self.extras:
            maps.append(layer(maps[-1]))

        def at_every_place(heads, width):
            return torch.cat([head(level).permute(0, 2, 3, 1).reshape(x.shape[0], -1, width)
                              for head, level in zip(heads, maps)], dim=1)
        scores = torch.softmax(at_every_place(self.classes, self.class_count), dim=2)
        offsets = at_every_place(self.boxes, 4)
        centre = offsets[..., :2] * 0.1 * self.priors[:, 2:] + self.priors[:, :2]
        extent = torch.exp(offsets[..., 2:] * 0.2) * self.priors[:, 2:]
        return scores, torch.cat([centre - extent / 2, centre + extent / 2], dim=2)
