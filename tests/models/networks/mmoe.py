"""MMoE. Ma et al., "Modeling Task Relationships in Multi-task Learning with Multi-gate Mixture-of-Experts" (KDD 2018),
Equations 5-7, at the sizes of its synthetic experiment: 100 inputs, 8 experts of 16 units, 2 tasks with towers of 8."""
import torch
from torch import nn


class Mmoe(nn.Module):
    def __init__(self, fan_in=100, experts=8, units=16, tower=8, tasks=2):
        super().__init__()
        self.experts = nn.Parameter(torch.randn(experts, fan_in, units) * fan_in**-0.5)
        self.bias = nn.Parameter(torch.randn(experts, units) * 0.1)
        self.gates = nn.ModuleList(nn.Linear(fan_in, experts, bias=False) for _ in range(tasks))
        self.towers = nn.ModuleList(nn.Sequential(nn.Linear(units, tower), nn.ReLU(), nn.Linear(tower, 1))
                                    for _ in range(tasks))

    def forward(self, x):  # [N, fan_in]
        outputs = torch.relu(torch.einsum("ni,eiu->neu", x, self.experts) + self.bias)
        return tuple(tower((torch.softmax(gate(x), dim=1).unsqueeze(2) * outputs).sum(dim=1))
                     for gate, tower in zip(self.gates, self.towers))
