#!/usr/bin/env python3
"""Exports full-size models from their public implementations, with seeded random weights.

usage: export.py --list
       export.py --out DIR [--seed N] [--opset N] [--unfolded] [NAME ...]

A model that cannot be exported does not keep the others from it: the last line names all of them, and the exit code is 1.

Weights have the implementation's own initialisation. Values that it leaves at zero or one (biases, scales and shifts of
norms, zeroed heads) are drawn as well, and batch norm statistics come from random inputs, so that activations stay of
order one through all layers. The same seed gives the same weights on the same version of PyTorch.

Debian: apt-get install python3-torch python3-torchvision, then /usr/bin/python3 export.py …
PyPI:   pip install torch torchvision onnx
The language models need transformers, which is on PyPI only. Beside Debian's PyTorch 1.13:
        /usr/bin/python3 -m venv --system-site-packages DIR && DIR/bin/pip install transformers==4.30.2
"""
import argparse
import importlib
import importlib.util
import inspect
import pathlib
import sys
import traceback
from typing import Callable, NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # for networks/

IMAGE = {"input": ("float32", (1, 3, 224, 224))}


class Recipe(NamedTuple):
    source: str
    inputs: dict  # name: (dtype, shape), and for integers an exclusive upper bound
    outputs: tuple
    make: Callable  # () -> torch.nn.Module
    packages: tuple


def torchvision_model(name, outputs=("logits",), inputs=IMAGE, module="torchvision.models"):
    def make():
        return getattr(importlib.import_module(module), name)(weights=None)
    return Recipe(f"{module}.{name}", inputs, outputs, make, ("torch", "torchvision"))


def detector(name, outputs):
    """torchvision's detectors take a list of images of any size. Untrained ones are sure of nothing and would find
    nothing, so the scores' layers get larger weights."""
    def make():
        import torch
        make_model = getattr(importlib.import_module("torchvision.models.detection"), name)
        model = make_model(weights=None, weights_backbone=None)

        class Detector(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model
                with torch.no_grad():
                    model.rpn.head.cls_logits.weight.mul_(10)
                    model.roi_heads.box_predictor.cls_score.weight.mul_(6)

            def forward(self, image):
                return tuple(self.model([image])[0].values())

        return Detector()
    return Recipe(f"torchvision.models.detection.{name}", {"input": ("float32", (3, 800, 800))}, outputs, make,
                  ("torch", "torchvision"))


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


def token_inputs(*names, vocabulary=30000):
    below = {"attention_mask": 2, "token_type_ids": 2}
    return {name: ("int64", (1, 128), below.get(name, vocabulary)) for name in names}


TWO_INPUTS = token_inputs("input_ids", "attention_mask")
BERT_INPUTS = token_inputs("input_ids", "attention_mask", "token_type_ids")


def language_model(kind, inputs=BERT_INPUTS, outputs=("last_hidden_state", "pooler_output"), note="", **sizes):
    """`kind` of transformers, at the sizes of its default configuration but for `sizes`."""
    def make():
        import transformers
        config = getattr(transformers, kind.replace("LMHeadModel", "Model").removesuffix("Model") + "Config")
        return by_keyword(getattr(transformers, kind)(config(attn_implementation="eager", **sizes)), list(inputs))
    return Recipe(f"transformers.{kind}{note}", inputs, outputs, make, ("torch", "transformers"))


def cache_of(pairs):
    """Keys and values of each layer, as this version of transformers takes them: an object since 4.36, or tuples."""
    try:
        from transformers import DynamicCache
    except ImportError:
        return pairs
    cache = DynamicCache()
    for layer, (keys, values) in enumerate(pairs):
        cache.update(keys, values, layer)
    return cache


def pairs_of(cache):
    """The inverse of cache_of."""
    return [(layer.keys, layer.values) for layer in cache.layers] if hasattr(cache, "layers") else cache


def gpt2_step(layers=12, heads=12, width=64, past=127):
    """GPT-2 at one token, with a cache of `past` tokens."""
    caches = [f"{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
    inputs = {"input_ids": ("int64", (1, 1), 30000), "attention_mask": ("int64", (1, past + 1), 2)}
    inputs.update({f"past_key_values.{cache}": ("float32", (1, heads, past, width)) for cache in caches})

    def make():
        import torch
        from transformers import GPT2Config, GPT2LMHeadModel
        model = GPT2LMHeadModel(GPT2Config(attn_implementation="eager"))

        class Step(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, input_ids, attention_mask, *caches):
                logits, presents = self.model(input_ids=input_ids, attention_mask=attention_mask, return_dict=False,
                                              past_key_values=cache_of(tuple(zip(caches[::2], caches[1::2]))))
                return (logits, *(part for pair in pairs_of(presents) for part in pair))

        return Step()
    return Recipe("transformers.GPT2LMHeadModel, one token with a cache", inputs,
                  ("logits", *(f"present.{cache}" for cache in caches)), make, ("torch", "transformers"))


def lstm():
    import torch
    return torch.nn.LSTM(256, 256, num_layers=10)


def network(module, name, inputs, outputs, packages=("torch",)):
    """One that no installable package has, from its paper."""
    def make():
        return getattr(importlib.import_module(f"networks.{module}"), name)()
    return Recipe(f"networks/{module}.py", inputs, outputs, make, packages)


def floats(*shape):
    return {"input": ("float32", shape)}


RECIPES = {name: torchvision_model(name) for name in ("resnet50", "mobilenet_v2", "efficientnet_b0", "vgg16",
                                                      "densenet121", "shufflenet_v2_x1_0", "vit_b_16",
                                                      "resnext101_64x4d", "swin_b")}
RECIPES |= {
    "s3d": torchvision_model("s3d", inputs=floats(1, 3, 16, 224, 224), module="torchvision.models.video"),
    "fasterrcnn_resnet50_fpn": detector("fasterrcnn_resnet50_fpn", ("boxes", "labels", "scores")),
    "maskrcnn_resnet50_fpn": detector("maskrcnn_resnet50_fpn", ("boxes", "labels", "scores", "masks")),
    "bert_base": language_model("BertModel"),
    "tinybert": language_model("BertModel", note=" at TinyBERT's sizes", hidden_size=312, num_hidden_layers=4,
                               num_attention_heads=12, intermediate_size=1200),
    "distilbert": language_model("DistilBertModel", TWO_INPUTS, ("last_hidden_state",)),
    "albert_base": language_model("AlbertModel", note=" at the base size", embedding_size=128, hidden_size=768,
                                  num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072),
    "mobilebert": language_model("MobileBertModel"),
    "gpt2": language_model("GPT2LMHeadModel", TWO_INPUTS, ("logits",), ", no cache", use_cache=False),
    "gpt2_kv": gpt2_step(),
    "transformer_base": language_model(
        "MarianModel", {"input_ids": ("int64", (1, 64), 30000), "decoder_input_ids": ("int64", (1, 64), 30000)},
        ("decoder_hidden_state", "encoder_hidden_state"), " at the base size of \"Attention is all you need\"",
        vocab_size=32000, pad_token_id=0, decoder_start_token_id=0, d_model=512, encoder_layers=6, decoder_layers=6,
        encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=2048, decoder_ffn_dim=2048,
        activation_function="relu", scale_embedding=True, use_cache=False),
    "lstm10": Recipe("torch.nn.LSTM", floats(100, 1, 256), ("output", "h_n", "c_n"), lstm, ("torch",)),
    "unet": network("unet", "UNet", floats(1, 3, 256, 256), ("mask",)),
    "yolo_v4": network("yolo_v4", "YoloV4", floats(1, 3, 416, 416), ("head_52", "head_26", "head_13")),
    "mobilenet_v1_ssd": network("mobilenet_ssd", "MobileNetV1Ssd", floats(1, 3, 300, 300), ("scores", "boxes")),
    "c3d": network("c3d", "C3d", floats(1, 3, 16, 112, 112), ("probabilities",)),
    "mmoe": network("mmoe", "Mmoe", floats(1, 100), ("task_0", "task_1")),
    "dlrm": network("dlrm", "Dlrm", {"dense": ("float32", (128, 13)), "sparse": ("int64", (128, 26), 1000)},
                    ("probability",)),
    "sar_drn": network("sar_drn", "SarDrn", floats(1, 1, 256, 256), ("image",)),
    "rednet50": network("rednet", "RedNet", IMAGE, ("logits",)),
    "dien": network("dien", "Dien", {"user": ("int64", (32,), 10000), "item": ("int64", (32,), 20000),
                                     "category": ("int64", (32,), 1600), "item_history": ("int64", (32, 50), 20000),
                                     "category_history": ("int64", (32, 50), 1600), "mask": ("float32", (32, 50))},
                    ("probabilities",)),
    "asr": network("speech", "DeepSpeech2", floats(1, 1, 161, 200), ("log_probabilities",)),
    "conformer": network("speech", "Conformer", floats(1, 200, 80), ("log_probabilities",), ("torch", "transformers")),
    "crnn": network("crnn", "Crnn", floats(1, 1, 32, 100), ("log_probabilities",)),
}


def missing_packages(recipe):
    return [name for name in recipe.packages if importlib.util.find_spec(name) is None]


def random_inputs(recipe):
    """Normal values, random indices, masks that let all through."""
    import torch
    values = []
    for name, (dtype, shape, *below) in recipe.inputs.items():
        if "mask" in name:
            values.append(torch.ones(shape, dtype=getattr(torch, dtype)))
        elif dtype == "float32":
            values.append(torch.randn(shape))
        else:
            values.append(torch.randint(0, below[0], shape))
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
        inputs = random_inputs(recipe)
        if inputs[0].shape[0] == 1:
            inputs = tuple(torch.cat(pair) for pair in zip(inputs, random_inputs(recipe)))
        model(*inputs)
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


class NotExported(Exception):
    pass


def flat(outputs):
    """As the exporter counts them."""
    if isinstance(outputs, (list, tuple)):
        return [tensor for part in outputs for tensor in flat(part)]
    return [outputs]


def symbolic_axes(recipe):
    """{input: {axis: name}}: batches, and the lengths of sequences of indices."""
    axes = {}
    for name, (dtype, shape, *_) in recipe.inputs.items():
        if dtype == "int64" or len(shape) >= 4:
            axes[name] = {axis: f"d{shape[axis]}" for axis in range(len(shape) if dtype == "int64" else 1)}
    return axes


def export(name, path, seed, opset, unfolded):
    import torch
    model, inputs = build(name, seed)
    with torch.no_grad():
        outputs = model(*inputs)
    for output in flat(outputs):
        if output.numel() == 0:
            raise NotExported("an output is empty; another --seed may help")
        constant = output.numel() > 1 and (output == output.flatten()[0]).all()
        if output.is_floating_point() and (constant or not torch.isfinite(output).all()):
            raise NotExported("the outputs are not finite or all the same; another --seed may help")
    recipe = RECIPES[name]
    legacy = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    part = path.with_suffix(".part")
    # The exporter folds batch norms if it is told to export for inference; the model itself is in eval mode either way.
    modes = torch.onnx.TrainingMode
    torch.onnx.export(model, inputs, str(part), opset_version=opset, input_names=list(recipe.inputs),
                      output_names=list(recipe.outputs), do_constant_folding=not unfolded,
                      training=modes.PRESERVE if unfolded else modes.EVAL,
                      dynamic_axes=symbolic_axes(recipe) if unfolded else None, **legacy)
    part.rename(path)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB", flush=True)


def export_all(names, folder, seed, opset, unfolded):
    """Returns {name: why} of the models that could not be exported."""
    failures = {}
    for name in names:
        path = folder / f"{name}.onnx"
        try:
            packages = missing_packages(RECIPES[name])
            if packages:
                raise NotExported(f"{', '.join(packages)} missing in {sys.executable}\n" +
                                  __doc__[__doc__.index("Debian:"):].rstrip())
            export(name, path, seed, opset, unfolded)
        except NotExported as failure:
            failures[name] = str(failure)
        except Exception as failure:  # of PyTorch, its exporter or a package of models, each with its own kinds
            traceback.print_exc()
            failures[name] = f"{type(failure).__name__}: {failure}"
        if name in failures:
            path.with_suffix(".part").unlink(missing_ok=True)
            print(f"{name}: not exported: {failures[name]}", file=sys.stderr, flush=True)
    return failures


def describe(recipe):
    text = [f"{name} {dtype}{list(shape)}" for name, (dtype, shape, *_) in recipe.inputs.items()]
    if len(text) > 6:
        text[5:] = [f"and {len(text) - 5} more"]
    return "; ".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which to export; all by default")
    parser.add_argument("--list", action="store_true", help="name the models, their inputs and where they come from")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--opset", type=int, default=16, help="16 writes LayerNorm out; from 17 it is one operator")
    parser.add_argument("--unfolded", action="store_true", help="batch norms, constants and shapes as nodes")
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
    failures = export_all(options.names or RECIPES, options.out, options.seed, options.opset, options.unfolded)
    if failures:
        sys.exit(f"not exported: {', '.join(failures)}")


if __name__ == "__main__":
    main()
