"""DLRM. Naumov et al., "Deep Learning Recommendation Model for Personalization and Recommendation Systems" (2019), at
the sizes of MLPerf's Criteo Terabyte configuration, but with tables cut to `rows`: 13 dense features, 26 tables, dot
interaction, one index a table."""
import torch
from torch import nn


def mlp(widths):
    layers = []
    for fan_in, fan_out in zip(widths, widths[1:]):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    return layers


class Dlrm(nn.Module):
    def __init__(self, rows=1000, tables=26, width=128):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        self.bottom = nn.Sequential(*mlp((13, 512, 256, width)))
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(*mlp((width + pairs, 1024, 1024, 512, 256)), nn.Linear(256, 1))
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, offset=-1))

    def forward(self, dense, sparse):  # [N, 13]; [N, tables]
        bottom = self.bottom(dense)
        vectors = torch.stack([bottom] + [table(sparse[:, i]) for i, table in enumerate(self.tables)], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        interactions = products[:, self.pairs[0], self.pairs[1]]
        return torch.sigmoid(self.top(torch.cat([bottom, interactions], dim=1)))
