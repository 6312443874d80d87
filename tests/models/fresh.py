"""Architectures drawn by a seed from what timm, torchvision and transformers list: the work of `zoo.py --fresh`.

A draw selects a library, then a family of it that was not drawn yet (a module of timm or torchvision, a model type of
transformers), then a model of the family. transformers' models get a small configuration, drawn as well. The same
seed with the same versions of the libraries makes the same models, weights included. A model that cannot be exported is
listed with the reason. Models of more than MAX_PARAMETERS are skipped and counted.

Each model is built and exported in a child process with a time limit, so that a crash or hang affects no other model.
"""
import inspect
import json
import multiprocessing
import os
import random
import warnings

MAX_PARAMETERS = 100_000_000
SECONDS_A_MODEL = 400

# Options that make a configuration of transformers small: each entry lists the names of one option in the library's
# families. A name is used if the default configuration holds one integer under it.
WIDTHS = ("hidden_size", "d_model", "n_embd", "dim", "emb_dim", "embed_dim", "embedding_size", "word_embed_proj_dim",
          "model_dim")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads",
         "encoder_num_attention_heads", "decoder_num_attention_heads")
KEY_HEADS = ("num_key_value_heads", "encoder_num_key_value_heads", "decoder_num_key_value_heads")
INNER = ("intermediate_size", "d_ff", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_inner", "moe_intermediate_size",
         "ffn_hidden_size")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers",
          "num_decoder_layers", "encoder_num_hidden_layers", "decoder_num_hidden_layers")
EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts")
CHOSEN_EXPERTS = ("num_experts_per_tok", "moe_k", "moe_topk")


def timm_families():
    import timm
    return {module: sorted(timm.list_models(module=module)) for module in sorted(timm.list_modules())
            if timm.list_models(module=module)}


def torchvision_families():
    import torchvision
    families = {}
    for name in sorted(torchvision.models.list_models()):
        builder = torchvision.models.get_model_builder(name)
        families.setdefault(builder.__module__.removeprefix("torchvision.models."), []).append(name)
    return families


def transformers_families():
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES
    return {name: [name] for name in sorted(MODEL_MAPPING_NAMES)}


def timm_model(name, draw):
    import timm
    import torch
    model = timm.create_model(name, pretrained=False)
    return model, (torch.randn(1, *model.default_cfg["input_size"]),), {}


def torchvision_model(name, draw):
    import torch
    import torchvision
    builder = torchvision.models.get_model_builder(name)
    options = {"weights": None}
    for option, value in (("weights_backbone", None), ("init_weights", True), ("aux_logits", False)):
        if option in inspect.signature(builder).parameters:
            options[option] = value
    model = builder(**options)
    module = builder.__module__
    if ".video" in module:
        return model, (torch.randn(1, 3, 16 if "mvit" in module or "s3d" in module else 8, *(
            (224, 224) if "mvit" in module or "s3d" in module else (112, 112))),), {}
    if ".detection" in module:
        return model, ([torch.rand(3, 320, 320)],), {}
    if ".optical_flow" in module:
        return model, (torch.randn(1, 3, 128, 160), torch.randn(1, 3, 128, 160)), {}
    side = 299 if "inception" in name else 224
    return model, (torch.randn(1, 3, side, side),), {}


def small_sizes(draw):
    """Sizes that all parts of a model share."""
    heads = draw.choice((2, 4, 6, 8))
    width = heads * draw.choice((32, 48, 64))
    sizes = dict.fromkeys(WIDTHS, width)
    sizes.update(dict.fromkeys(HEADS, heads))
    sizes.update(dict.fromkeys(KEY_HEADS, draw.choice([n for n in (1, 2, heads) if heads % n == 0])))
    sizes.update(dict.fromkeys(INNER, width * draw.choice((2, 3, 4))))
    sizes.update(dict.fromkeys(LAYERS, draw.choice((2, 3, 4))))
    sizes.update(dict.fromkeys(EXPERTS, 4))
    sizes.update(dict.fromkeys(CHOSEN_EXPERTS, 2))
    sizes.update(head_dim=width // heads, vocab_size=draw.choice((1000, 2000, 5000)))
    return sizes


def small_options(default, sizes):
    """Those of `sizes` that the default configuration has, for its parts as well."""
    options = {key: value for key, value in sizes.items()
               if type(default.to_dict().get(key)) is int or (key == "head_dim" and key in default.to_dict())}
    for part in getattr(default, "sub_configs", {}):
        if getattr(default, part, None) is not None:
            options[part] = small_options(getattr(default, part), sizes)
    return options


def without_cache(config):
    config.use_cache = False
    for part in getattr(config, "sub_configs", {}):
        if getattr(config, part, None) is not None:
            without_cache(getattr(config, part))


def small_configurations(kind, draw):
    """Configurations from small to the default one: constraints between options differ, so a family may refuse some."""
    sizes = small_sizes(draw)
    default = kind()
    some = {key: sizes[key] for key in (*LAYERS, *EXPERTS, "vocab_size")}
    for chosen in (sizes, some, {}):
        options = small_options(default, chosen)
        try:
            yield kind(**options), options
        except Exception:  # configurations check all kinds of things
            continue


def first_attribute(config, names):
    """The first of `names` that the configuration or a part of it has."""
    for name in names:
        value = getattr(config, name, None)
        if value:
            return value
    for part in getattr(config, "sub_configs", {}):
        if getattr(config, part, None) is not None:
            value = first_attribute(getattr(config, part), names)
            if value:
                return value
    return None


def transformers_inputs(model, config, draw):
    import torch
    takes = inspect.signature(model.forward).parameters
    ids = draw.choice((16, 48, 64, 100))
    vocabulary = first_attribute(config, ("vocab_size",)) or 1000
    side = first_attribute(config, ("image_size",)) or 224
    side = side if isinstance(side, (list, tuple)) else (side, side)
    channels = first_attribute(config, ("num_channels",)) or 3
    mels = first_attribute(config, ("num_mel_bins", "n_mels", "feature_size", "input_dim")) or 80
    frames = 2 * (first_attribute(config, ("max_source_positions",)) or 128)
    images = first_attribute(config, ("num_frames",))  # of a video
    known = {
        "input_ids": lambda: torch.randint(3, max(vocabulary, 4), (1, ids)),
        "pixel_values": lambda: torch.randn(1, *([images] if images else []), channels, *side),
        "pixel_values_videos": lambda: torch.randn(1, images or 8, channels, *side),
        "input_values": lambda: torch.randn(1, 16000),
        "input_features": lambda: torch.randn(1, mels, frames),
    }
    if model.main_input_name not in known:
        raise ValueError(f"takes '{model.main_input_name}', for which there is no generator of inputs here")
    values = {model.main_input_name: known[model.main_input_name]()}
    if "decoder_input_ids" in takes:
        values["decoder_input_ids"] = torch.randint(3, max(vocabulary, 4), (1, 16))
    return values


def transformers_model(name, draw):
    import torch
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_MAPPING
    kind = CONFIG_MAPPING[name]
    cls = MODEL_MAPPING[kind]
    cls = cls[0] if isinstance(cls, (list, tuple)) else cls
    error = ValueError(f"no configuration of {kind.__name__} is accepted")
    for config, options in small_configurations(kind, draw):
        without_cache(config)
        try:
            with torch.device("meta"):
                limit_parameters(cls(config))
            model = cls(config).eval()
            if hasattr(model, "set_experts_implementation"):
                model.set_experts_implementation("batched_mm")  # the default is an operator of transformers' own
            values = transformers_inputs(model, config, draw)
            with torch.no_grad():
                model(**values)
        except Exception as reason:  # models check all kinds of sizes
            error = reason
            continue
        return model, (), values
    raise error


# library: (families, how to make one)
LIBRARIES = {"timm": (timm_families, timm_model), "torchvision": (torchvision_families, torchvision_model),
             "transformers": (transformers_families, transformers_model)}


class TooLarge(Exception):
    pass


def limit_parameters(model):
    count = sum(parameter.numel() for parameter in model.parameters())
    if count > MAX_PARAMETERS:
        raise TooLarge(f"{count / 1e6:.0f} million parameters, more than {MAX_PARAMETERS / 1e6:.0f}")
    return count


def draws(seed):
    """(library, name) for as long as there are families that were not drawn."""
    draw = random.Random(f"fresh {seed}")
    left = {library: families() for library, (families, _) in LIBRARIES.items()}
    while any(left.values()):
        library = draw.choice([library for library in left if left[library]])
        family = draw.choice(sorted(left[library]))
        yield library, draw.choice(left[library].pop(family))


def export_one(library, name, seed, path, channel):
    """In a child process: sends what happened as a dictionary."""
    import torch
    warnings.filterwarnings("ignore")
    said = os.open(os.devnull, os.O_WRONLY)  # exporters print whole graphs, from C++ as well
    os.dup2(said, 1)
    os.dup2(said, 2)
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    told, stage = {}, "not built"
    try:
        model, args, kwargs = LIBRARIES[library][1](name, random.Random(f"{seed} {library} {name}"))
        model = model.eval()
        told["parameters"] = limit_parameters(model)
        told["inputs"] = {key: list(value.shape) for key, value in kwargs.items()} or [
            list(getattr(value, "shape", ())) or "a list of images" for value in args]
        stage = "not run by PyTorch"
        with torch.no_grad():
            model(*args, **kwargs)
        stage = "not exported"
        torch.onnx.export(model, args, str(path), kwargs=kwargs, dynamo=True, external_data=False, verbose=False)
        import onnx
        graph = onnx.load(str(path), load_external_data=False)
        told["opset"] = next(entry.version for entry in graph.opset_import if entry.domain == "")
        told["nodes"] = len(graph.graph.node)
        told["file"] = path.name
    except TooLarge as error:
        told["too_large"] = str(error)
    except BaseException as error:  # libraries and exporters raise all kinds of errors
        cause = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        words = str(cause).strip().splitlines() or [""]
        told["reason"] = f"{stage}: {type(cause).__name__}: {words[0][:300]}"
    if "file" not in told:
        path.unlink(missing_ok=True)
    channel.send(told)


def export_in_child(library, name, seed, path):
    context = multiprocessing.get_context("fork")  # the libraries are loaded once
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=export_one, args=(library, name, seed, path, theirs))
    child.start()
    theirs.close()
    told = {"reason": f"not exported in {SECONDS_A_MODEL} s"}
    try:
        if ours.poll(SECONDS_A_MODEL):
            told = ours.recv()
    except EOFError:
        child.join()
        told = {"reason": f"the exporter ended with {child.exitcode}"}
    if child.is_alive():
        child.join(10)
        if child.is_alive():
            child.kill()
    if "file" not in told:
        path.unlink(missing_ok=True)
    return told


def versions():
    import onnxscript
    import timm
    import torch
    import torchvision
    import transformers
    return {module.__name__: module.__version__ for module in (torch, torchvision, timm, transformers, onnxscript)}


def export(seed, count, folder):
    """Draws `count` models of at most MAX_PARAMETERS; writes those that export and fresh.json. Whether all exported."""
    folder.mkdir(parents=True, exist_ok=True)
    account = {"seed": seed, "drawn": count, "max_parameters": MAX_PARAMETERS, "versions": versions(), "models": []}
    passed_over = []
    for library, name in draws(seed):
        if len(account["models"]) == count:
            break
        path = folder / f"{library}_{name}.onnx"
        told = export_in_child(library, name, seed, path)
        if "too_large" in told:
            passed_over.append({"library": library, "name": name, "reason": told["too_large"]})
            continue
        account["models"].append({"library": library, "name": name, **told})
        print(f"{library} {name}: {told.get('reason') or '%d nodes, opset %d' % (told['nodes'], told['opset'])}", flush=True)
        account["passed_over"] = passed_over
        (folder / "fresh.json").write_text(json.dumps(account, indent=1) + "\n")
    exported = sum("file" in model for model in account["models"])
    print(f"seed {seed}: {exported} of {len(account['models'])} exported, {len(passed_over)} passed over as too large")
    return exported == len(account["models"])
