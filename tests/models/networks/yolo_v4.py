"""YOLOv4. Bochkovskiy et al., "YOLOv4: Optimal Speed and Accuracy of Object Detection" (2020), with yolov4.cfg of the
authors' Darknet: CSPDarknet53 with Mish, SPP, PANet with LeakyReLU; 110 convolutions. Heads before decoding."""
import torch
from torch import nn
from torch.nn import functional


def conv(fan_in, fan_out, kernel, stride=1, activation=nn.Mish):
    return nn.Sequential(nn.Conv2d(fan_in, fan_out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(fan_out),
                         activation())


def leaky(fan_in, fan_out, kernel, stride=1):
    return conv(fan_in, fan_out, kernel, stride, lambda: nn.LeakyReLU(0.1))


class Residual(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.body = nn.Sequential(conv(channels, hidden, 1), conv(hidden, channels, 3))

    def forward(self, x):
        return x + self.body(x)


class CspStage(nn.Module):
    """Halves the image; one part of the channels passes through `blocks` residual blocks, the other passes by."""

    def __init__(self, fan_in, fan_out, blocks):
        super().__init__()
        first = blocks == 1  # the first stage keeps all channels in both parts
        part = fan_out if first else fan_out // 2
        self.down = conv(fan_in, fan_out, 3, 2)
        self.by = conv(fan_out, part, 1)
        self.through = nn.Sequential(conv(fan_out, part, 1),
                                     *(Residual(part, fan_out // 2) for _ in range(blocks)), conv(part, part, 1))
        self.merge = conv(2 * part, fan_out, 1)

    def forward(self, x):
        x = self.down(x)
        return self.merge(torch.cat([self.through(x), self.by(x)], dim=1))


def five(fan_in, width):
    return nn.Sequential(leaky(fan_in, width, 1), leaky(width, 2 * width, 3), leaky(2 * width, width, 1),
                         leaky(width, 2 * width, 3), leaky(2 * width, width, 1))


class YoloV4(nn.Module):
    def __init__(self, classes=80):
        super().__init__()
        outputs = 3 * (5 + classes)
        self.stem = conv(3, 32, 3)
        self.stages = nn.ModuleList(CspStage(*shape) for shape in ((32, 64, 1), (64, 128, 2), (128, 256, 8),
                                                                   (256, 512, 8), (512, 1024, 4)))
        self.before_spp = nn.Sequential(leaky(1024, 512, 1), leaky(512, 1024, 3), leaky(1024, 512, 1))
        self.after_spp = nn.Sequential(leaky(2048, 512, 1), leaky(512, 1024, 3), leaky(1024, 512, 1))
        self.rise = nn.ModuleList([leaky(512, 256, 1), leaky(256, 128, 1)])
        self.lateral = nn.ModuleList([leaky(512, 256, 1), leaky(256, 128, 1)])
        self.up = nn.ModuleList([five(512, 256), five(256, 128)])
        self.sink = nn.ModuleList([leaky(128, 256, 3, 2), leaky(256, 512, 3, 2)])
        self.down = nn.ModuleList([five(512, 256), five(1024, 512)])
        self.heads = nn.ModuleList(nn.Sequential(leaky(width, 2 * width, 3), nn.Conv2d(2 * width, outputs, 1))
                                   for width in (128, 256, 512))

    def forward(self, x):  # [N, 3, H, W]; H and W multiples of 32
        x = self.stem(x)
        levels = []
        for stage in self.stages:
            x = stage(x)
            levels.append(x)
        x = self.before_spp(levels[4])
        bottom = self.after_spp(torch.cat([functional.max_pool2d(x, k, 1, k // 2) for k in (13, 9, 5)] + [x], dim=1))
        paths = [bottom]
        for rise, lateral, up, level in zip(self.rise, self.lateral, self.up, (levels[3], levels[2])):
            risen = functional.interpolate(rise(paths[-1]), scale_factor=2.0, mode="nearest")
            paths.append(up(torch.cat([lateral(level), risen], dim=1)))
        outputs = [paths[2]]
        for sink, down, path in zip(self.sink, self.down, (paths[1], paths[0])):
            outputs.append(down(torch.cat([sink(outputs[-1]), path], dim=1)))
        return tuple(head(y) for head, y in zip(self.heads, outputs))
