#!/usr/bin/env python3
"""Exports full-size models from their public implementations, with seeded random weights.

usage: export.py --list
       export.py --out DIR [--seed N] [--opset N] [NAME ...]

Weights are the implementation's own initialisation, with what that leaves at zero or one drawn as well (biases, scales
and shifts of norms, zeroed heads), and batch norm statistics taken from random inputs, so that activations stay of order
one through all layers. The same seed gives the same weights on the same version of PyTorch.

Debian: apt-get install python3-torch python3-torchvision, then /usr/bin/python3 export.py …
PyPI:   pip install torch torchvision onnx
The language models need transformers, which is on PyPI only. Beside Debian's PyTorch 1.13:
        /usr/bin/python3 -m venv --system-site-packages DIR && DIR/bin/pip install transformers==4.30.2
"""
import argparse
import importlib.util
import inspect
import pathlib
import sys
from typing import Callable, NamedTuple

IMAGE = {"input": ("float32", (1, 3, 224, 224))}


def token_inputs(*names):
    return {name: ("int64", (1, 128)) for name in names}


class Recipe(NamedTuple):
    source: str
    inputs: dict  # name: (dtype, shape)
    outputs: tuple
    make: Callable  # () -> torch.nn.Module
    packages: tuple


def torchvision_model(name):
    return lambda: getattr(importlib.import_module("torchvision.models"), name)(weights=None)


def classifier(name):
    return Recipe(f"torchvision.models.{name}", IMAGE, ("logits",), torchvision_model(name), ("torch", "torchvision"))


def by_keyword(model, names):
    """The exporter passes inputs by position; language models take them in an order that differs between versions."""
    import torch

    class ByKeyword(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *inputs):
            return self.model(**dict(zip(names, inputs)), return_dict=False)

    return ByKeyword()


BERT_INPUTS = token_inputs("input_ids", "attention_mask", "token_type_ids")
GPT2_INPUTS = token_inputs("input_ids", "attention_mask")


def bert_base():
    from transformers import BertConfig, BertModel
    return by_keyword(BertModel(BertConfig(attn_implementation="eager")), list(BERT_INPUTS))


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return by_keyword(GPT2LMHeadModel(GPT2Config(attn_implementation="eager", use_cache=False)), list(GPT2_INPUTS))


def unet(width=32, classes=1):
    """Ronneberger et al., "U-Net" (MICCAI 2015), Figure 1, with padding and batch norm, and `width` channels at the top."""
    import torch
    from torch import nn

    def double_conv(fan_in, fan_out):
        layers = []
        for channels in (fan_in, fan_out):
            layers += [nn.Conv2d(channels, fan_out, 3, padding=1, bias=False), nn.BatchNorm2d(fan_out), nn.ReLU()]
        return nn.Sequential(*layers)

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            widths = [width << level for level in range(5)]
            self.down = nn.ModuleList(double_conv(i, o) for i, o in zip([3] + widths, widths))
            self.pool = nn.MaxPool2d(2)
            self.grow = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in reversed(widths[:-1]))
            self.up = nn.ModuleList(double_conv(2 * w, w) for w in reversed(widths[:-1]))
            self.head = nn.Conv2d(width, classes, 1)

        def forward(self, x):
            skips = []
            for level in self.down:
                x = level(self.pool(x) if skips else x)
                skips.append(x)
            for grow, level, skip in zip(self.grow, self.up, reversed(skips[:-1])):
                x = level(torch.cat([grow(x), skip], dim=1))
            return torch.sigmoid(self.head(x))

    return UNet()


LANGUAGE = ("torch", "transformers")
RECIPES = {name: classifier(name) for name in ("resnet50", "mobilenet_v2", "efficientnet_b0", "vgg16", "densenet121",
                                               "shufflenet_v2_x1_0", "vit_b_16")}
RECIPES["bert_base"] = Recipe("transformers.BertModel", BERT_INPUTS, ("last_hidden_state", "pooler_output"), bert_base,
                              LANGUAGE)
RECIPES["gpt2"] = Recipe("transformers.GPT2LMHeadModel, no cache", GPT2_INPUTS, ("logits",), gpt2, LANGUAGE)
RECIPES["unet"] = Recipe("defined in this script", {"input": ("float32", (1, 3, 256, 256))}, ("mask",), unet, ("torch",))


def missing_packages(recipe):
    return [name for name in recipe.packages if importlib.util.find_spec(name) is None]


def random_inputs(recipe):
    """Normal images, random tokens, a mask that lets all of them through."""
    import torch
    values = []
    for name, (dtype, shape) in recipe.inputs.items():
        if dtype == "float32":
            values.append(torch.randn(shape))
        elif name == "attention_mask":
            values.append(torch.ones(shape, dtype=torch.int64))
        else:
            values.append(torch.randint(0, 2 if name == "token_type_ids" else 30000, shape))
    return tuple(values)


def draw_what_is_constant(model):
    """Equal initial values would be merged by the exporter, and hide mistakes."""
    import torch
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not torch.all(parameter == parameter.flatten()[0]):
                continue
            noise = torch.randn_like(parameter)
            if parameter.dim() > 1:
                parameter.copy_(noise * parameter[0].numel()**-0.5)
            else:
                parameter.add_(noise * 0.1 if name.endswith("weight") else noise * 0.02)


def take_batch_statistics(model, recipe):
    import torch
    norms = [m for m in model.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean over all batches
        norm.train()
    with torch.no_grad():
        model(*(torch.cat([value, torch.randn_like(value)]) for value in random_inputs(recipe)))
    model.eval()


def build(name, seed=0):
    """(model in eval mode, inputs by position) of a recipe whose packages are there."""
    import torch
    recipe = RECIPES[name]
    torch.manual_seed(seed)
    model = recipe.make().eval()
    draw_what_is_constant(model)
    take_batch_statistics(model, recipe)
    return model, random_inputs(recipe)


def export(name, path, seed, opset):
    import torch
    model, inputs = build(name, seed)
    with torch.no_grad():
        outputs = model(*inputs)
    for output in [outputs] if isinstance(outputs, torch.Tensor) else outputs:
        if not torch.isfinite(output).all() or output.std() == 0:
            sys.exit(f"{name}: the outputs are not finite or all the same; another --seed may help")
    recipe = RECIPES[name]
    legacy = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    part = path.with_suffix(".part")
    torch.onnx.export(model, inputs, str(part), opset_version=opset, input_names=list(recipe.inputs),
                      output_names=list(recipe.outputs), do_constant_folding=True, **legacy)
    part.rename(path)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB", flush=True)


def describe(recipe):
    return "; ".join(f"{name} {dtype}{list(shape)}" for name, (dtype, shape) in recipe.inputs.items()).replace(" [", "[")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which to export; all by default")
    parser.add_argument("--list", action="store_true", help="name the models, their inputs and where they come from")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--opset", type=int, default=16, help="16 writes LayerNorm out; from 17 it is one operator")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in RECIPES]
    if unknown:
        parser.error(f"no model {', '.join(unknown)}; there are {', '.join(RECIPES)}")
    if options.list:
        for name, recipe in RECIPES.items():
            lacking = missing_packages(recipe)
            note = f"  (needs {', '.join(lacking)})" if lacking else ""
            print(f"{name:20} {describe(recipe)}  from {recipe.source}{note}")
        return
    if options.out is None:
        parser.error("say where to with --out DIR")
    options.out.mkdir(parents=True, exist_ok=True)
    lacking = set()
    for name in options.names or RECIPES:
        packages = missing_packages(RECIPES[name])
        if packages:
            print(f"{name}: not exported, {', '.join(packages)} missing in {sys.executable}", file=sys.stderr)
            lacking.update(packages)
            continue
        export(name, options.out / f"{name}.onnx", options.seed, options.opset)
    if lacking:
        sys.exit(__doc__[__doc__.index("Debian:"):].rstrip())


if __name__ == "__main__":
    main()
