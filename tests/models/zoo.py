#!/usr/bin/env python3
"""Exports models that the compiler was not written for: general code must work on them, too.

usage: zoo.py --out DIR [NAME ...]
       zoo.py --out DIR --fresh SEED N

Classes of torchvision and transformers as they are, with the weights of their initialisation (seed 0); language models
with few layers. A model that does not export is named with the reason. To compile, compare and time them:

    tests/bench/compare_peers.py --threads 1 DIR/*.onnx

The compiler was developed with these models in view. --fresh draws N models that the developers cannot have seen, with
today's exporter: see fresh.py, and DIR/fresh.json for the drawn models and the reasons why some were not exported.

PyPI: pip install torch torchvision timm transformers onnx onnxscript
"""
import argparse
import importlib
import pathlib
import sys
import warnings

import fresh

IMAGES = {
    "torchvision.models": [
        "alexnet", "squeezenet1_1", "googlenet", "inception_v3", "mnasnet1_0", "regnet_y_400mf", "convnext_tiny",
        "mobilenet_v3_small", "efficientnet_v2_s", "swin_v2_t", "maxvit_t", "resnet18", "wide_resnet50_2"],
    "torchvision.models.segmentation": [
        "deeplabv3_mobilenet_v3_large", "fcn_resnet50", "lraspp_mobilenet_v3_large"],
    "torchvision.models.video": ["r3d_18"],
}
SIZES = {"inception_v3": (3, 299, 299), "r3d_18": (3, 8, 112, 112), "mobilevit": (3, 256, 256)}

SMALL = {"hidden_size": 512, "num_attention_heads": 8, "vocab_size": 5000}
# name: (class, configuration, kind of input, options of the configuration)
TRANSFORMERS = {
    "roberta": ("RobertaModel", "RobertaConfig", "ids", {"num_hidden_layers": 4}),
    "electra": ("ElectraModel", "ElectraConfig", "ids", {"num_hidden_layers": 4}),
    "deberta": ("DebertaV2Model", "DebertaV2Config", "ids",
                {"num_hidden_layers": 2, "hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536,
                 "vocab_size": 2000, "relative_attention": True, "pos_att_type": ["p2c", "c2p"],
                 "max_relative_positions": -1, "position_buckets": 64}),
    "xlnet": ("XLNetModel", "XLNetConfig", "ids",
              {"n_layer": 2, "d_model": 256, "n_head": 4, "d_inner": 1024, "vocab_size": 2000}),
    "funnel": ("FunnelBaseModel", "FunnelConfig", "ids",
               {"vocab_size": 2000, "d_model": 256, "n_head": 4, "d_head": 64, "d_inner": 1024, "block_sizes": [2, 2]}),
    "opt": ("OPTModel", "OPTConfig", "ids",
            {**SMALL, "num_hidden_layers": 4, "ffn_dim": 2048, "word_embed_proj_dim": 512}),
    "llama": ("LlamaModel", "LlamaConfig", "ids", {**SMALL, "num_hidden_layers": 2, "intermediate_size": 1376}),
    "gpt_neox": ("GPTNeoXModel", "GPTNeoXConfig", "ids", {**SMALL, "num_hidden_layers": 2, "intermediate_size": 2048}),
    "bloom": ("BloomModel", "BloomConfig", "ids", {"n_layer": 2, "hidden_size": 512, "n_head": 8, "vocab_size": 5000}),
    "t5enc": ("T5EncoderModel", "T5Config", "ids",
              {"num_layers": 3, "d_model": 256, "d_ff": 1024, "num_heads": 4, "vocab_size": 5000}),
    "beit": ("BeitModel", "BeitConfig", "image", {"num_hidden_layers": 3}),
    "segformer": ("SegformerModel", "SegformerConfig", "image", {}),
    "clip_vision": ("CLIPVisionModel", "CLIPVisionConfig", "image", {"num_hidden_layers": 3}),
    "poolformer": ("PoolFormerModel", "PoolFormerConfig", "image", {}),
    "levit": ("LevitModel", "LevitConfig", "image", {}),
    "mobilevit": ("MobileViTModel", "MobileViTConfig", "image", {}),
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2Config", "sound", {"num_hidden_layers": 2}),
    "whisper_enc": ("WhisperModel", "WhisperConfig", "mels", {"encoder_layers": 2, "decoder_layers": 2}),
}


def image_model(name, module):
    import torch
    options = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
    if module.endswith("segmentation"):
        options["weights_backbone"] = None
    model = getattr(importlib.import_module(module), name)(weights=None, **options)
    return model, torch.randn(1, *SIZES.get(name, (3, 224, 224)))


def transformers_model(name):
    import torch
    import transformers
    cls, configuration, takes, options = TRANSFORMERS[name]
    config = getattr(transformers, configuration)(**options)
    config.return_dict = False
    if hasattr(config, "use_cache"):
        config.use_cache = False
    model = getattr(transformers, cls)(config)
    if takes == "ids":
        return model, torch.randint(0, config.vocab_size, (1, 32 if name == "xlnet" else 64))
    if takes == "mels":
        return model.encoder, torch.randn(1, 80, 3000)
    return model, torch.randn(1, 16000) if takes == "sound" else torch.randn(1, *SIZES.get(name, (3, 224, 224)))


def recurrent_model(name):
    import torch
    layer = torch.nn.GRU if name == "gru_bi" else torch.nn.LSTM
    return layer(16, 32, 2, batch_first=True, bidirectional=True), torch.randn(2, 20, 16)


def encoder_layers():
    import torch
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 2), torch.randn(2, 10, 64)


def makers():
    found = {name: lambda name=name, module=module: image_model(name, module)
             for module, names in IMAGES.items() for name in names}
    found.update({name: lambda name=name: transformers_model(name) for name in TRANSFORMERS})
    found.update({name: lambda name=name: recurrent_model(name) for name in ("gru_bi", "lstm_bi")})
    found["mha"] = encoder_layers
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--fresh", type=int, nargs=2, metavar=("SEED", "N"), help="draw N architectures by SEED")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    if options.fresh:
        return 0 if fresh.export(*options.fresh, options.out) else 1
    known = makers()
    for name in options.names:
        if name not in known:
            parser.error(f"no model '{name}': use one of {', '.join(known)}")
    import torch
    warnings.filterwarnings("ignore")
    options.out.mkdir(parents=True, exist_ok=True)
    failed = False
    for name in options.names or known:
        torch.manual_seed(0)
        try:
            model, value = known[name]()
            torch.onnx.export(model.eval(), (value,), str(options.out / f"{name}.onnx"), opset_version=17,
                              dynamo=False)
            print(name, flush=True)
        except Exception as error:  # exporters raise all kinds of errors
            failed = True
            print(f"{name}: not exported, {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
