"""Speech recognition. DeepSpeech2: Amodei et al. (ICML 2016), two convolutions over spectrograms, five bidirectional
GRUs with batch norm between them, CTC. Conformer: Gulati et al. (Interspeech 2020), Table 1 column M, whose blocks are those
of transformers, with relative positions; subsampling by four, CTC head."""
import torch
from torch import nn


class DeepSpeech2(nn.Module):
    def __init__(self, hidden=512, layers=5, labels=29):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 32, (41, 11), (2, 2), (20, 5)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20),
            nn.Conv2d(32, 32, (21, 11), (2, 1), (10, 5)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20))
        fans = [32 * 41] + [hidden] * (layers - 1)
        self.norms = nn.ModuleList(nn.BatchNorm1d(fan) for fan in fans)
        self.recurrent = nn.ModuleList(nn.GRU(fan, hidden, bidirectional=True) for fan in fans)
        self.head = nn.Linear(hidden, labels, bias=False)

    def forward(self, x):  # [N, 1, 161 frequencies, T]
        x = self.conv(x).flatten(1, 2)
        for norm, recurrent in zip(self.norms, self.recurrent):
            y, _ = recurrent(norm(x).permute(2, 0, 1))
            x = (y[..., :y.shape[2] // 2] + y[..., y.shape[2] // 2:]).permute(1, 2, 0)
        return torch.log_softmax(self.head(x.transpose(1, 2)), dim=2)


class Conformer(nn.Module):
    def __init__(self, width=256, layers=16, heads=4, kernel=31, mels=80, labels=1000):
        super().__init__()
        from transformers import Wav2Vec2ConformerConfig
        from transformers.models.wav2vec2_conformer import modeling_wav2vec2_conformer as blocks
        config = Wav2Vec2ConformerConfig(
            hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=4 * width,
            conv_depthwise_kernel_size=kernel, hidden_act="swish", position_embeddings_type="relative",
            max_source_positions=1024)
        self.subsample = nn.Sequential(nn.Conv2d(1, width, 3, 2), nn.ReLU(), nn.Conv2d(width, width, 3, 2), nn.ReLU())
        self.project = nn.Linear(width * (((mels - 1) // 2 - 1) // 2), width)
        self.positions = blocks.Wav2Vec2ConformerRelPositionalEmbedding(config)
        self.layers = nn.ModuleList(blocks.Wav2Vec2ConformerEncoderLayer(config) for _ in range(layers))
        self.head = nn.Linear(width, labels)

    def forward(self, x):  # [N, T, mels]
        x = self.subsample(x.unsqueeze(1))  # [N, width, T/4, mels/4]
        x = self.project(x.transpose(1, 2).flatten(2))
        positions = self.positions(x)
        for layer in self.layers:
            x = layer(x, relative_position_embeddings=positions)
            if isinstance(x, tuple):  # with the attention's weights, before transformers 5
                x = x[0]
        return torch.log_softmax(self.head(x), dim=2)
