#include "compiler/bundle/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace fusion {
namespace {

using nlohmann::json;

// `unicode-bidi: isolate` keeps a name with direction marks from reordering the rest of its row.
const char kHead[] = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<style>
:root { color-scheme: light dark }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid #8884; vertical-align: top }
td, dd, h1 { overflow-wrap: anywhere; unicode-bidi: isolate }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.d { white-space: nowrap }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1.2rem }
dd { margin: 0 }
.bar { background: #4a7dbd; height: 1rem; min-width: 1px }
.dot { display: inline-block; width: .7rem; height: .7rem; border-radius: 50%; margin-right: .4rem }
.fused { background: #2c9a4b } .latency { background: #e0b000 } .apart { background: #cc3b3b }
</style>
)";

std::string Scaled(double value, const char* unit, double step, const std::vector<const char*>& prefixes) {
  size_t prefix = 0;
  while (value >= step && prefix + 1 < prefixes.size()) {
    value /= step;
    ++prefix;
  }
  return absl::StrFormat("%.*f %s%s", prefix == 0 ? 0 : 2, value, prefixes[prefix], unit);
}
std::string Bytes(double bytes) { return Scaled(bytes, "B", 1024, {"", "Ki", "Mi", "Gi", "Ti"}); }
std::string Flops(double flops) { return Scaled(flops, "FLOP", 1000, {"", "k", "M", "G", "T"}); }

std::string Text(const json& object, const char* key) {
  auto it = object.find(key);
  return it != object.end() && it->is_string() ? HtmlEscape(it->get<std::string>()) : "";
}

json Items(const json& plan, const char* key) {
  if (!plan.is_object()) return json::array();
  auto it = plan.find(key);
  json items = json::array();
  if (it == plan.end() || !it->is_array()) return items;
  for (const json& item : *it) {
    if (item.is_object()) items.push_back(item);
  }
  return items;
}

std::string Fact(const std::string& name, const std::string& value) {
  return absl::StrCat("<dt>", HtmlEscape(name), "</dt><dd>", HtmlEscape(value), "</dd>\n");
}

std::string Bar(const char* name, int64_t bytes, int64_t whole) {
  const double percent = whole > 0 ? 100.0 * static_cast<double>(bytes) / static_cast<double>(whole) : 0;
  return absl::StrCat("<tr><td>", name, "</td><td class=\"n\">", Bytes(static_cast<double>(bytes)),
                      "</td><td style=\"width: 60%\"><div class=\"bar\" style=\"width: ",
                      absl::StrFormat("%.1f", std::clamp(percent, 0.0, 100.0)), "%\"></div></td></tr>\n");
}

std::string WeightsInWords(const WeightsAccount& weights) {
  std::string words = Bytes(static_cast<double>(weights.bundle_bytes));
  if (weights.model_bytes > 0) {
    absl::StrAppend(&words, " for ", Bytes(static_cast<double>(weights.model_bytes)),
                    " of the model: ", absl::StrFormat("%.2f", weights.ratio()));
  }
  if (weights.time_ratio > 0) {
    absl::StrAppend(&words, "; kept small at ", absl::StrFormat("%.2f", weights.time_ratio), " of the estimated time");
  }
  return words;
}

// The cost of packing constants alike, and the constants that are packed in several ways nevertheless.
std::string PackingsInWords(const CompileAccount& account) {
  std::vector<std::string> words;
  if (account.sharing_ns > 0) {
    words.push_back(
        absl::StrFormat("kernels that pack constants alike take an estimated %.1f µs more", account.sharing_ns / 1000));
  }
  if (account.packed_apart > 0) {
    words.push_back(absl::StrCat(account.packed_apart, account.packed_apart == 1 ? " constant is" : " constants are",
                                 " packed in several ways, because kernels that agree would cost more than 1% of the "
                                 "time; --size small makes them agree"));
  }
  return absl::StrJoin(words, "; ");
}

std::string Facts(const Manifest& manifest, const CompileAccount& account) {
  std::string html =
      absl::StrCat("<dl>\n", Fact("generator", manifest.generator),
                   Fact("built for", absl::StrCat(manifest.target, " ", manifest.isa, " ", manifest.march)));
  for (const auto& [name, value] : manifest.options) html += Fact(name, value);
  for (const SpecialisationAccount& one : account.specialisations) {
    html += Fact("specialisation", absl::StrCat(one.name, ": ", one.kernels, " launches"));
  }
  absl::StrAppend(&html,
                  Fact("operators", absl::StrCat(account.nodes_model, " in the model, ", account.nodes_simplified,
                                                 " simplified, ", account.nodes_rewritten, " rewritten")),
                  Fact("kernels", absl::StrCat(manifest.launches.size(), " launches of ", manifest.kernels.size(),
                                               " distinct kernels")),
                  Fact("arithmetic", Flops(account.flops)), Fact("weights", WeightsInWords(account.weights)),
                  Fact("arena", Bytes(static_cast<double>(manifest.arena_bytes))));
  if (const std::string packings = PackingsInWords(account); !packings.empty()) html += Fact("packings", packings);
  return html + "</dl>\n";
}

std::string WeightTable(const WeightsAccount& weights) {
  const auto row = [](const std::string& what, int64_t bytes) {
    return absl::StrCat("<tr><td>", HtmlEscape(what), "</td><td class=\"n\">", bytes < 0 ? "-" : "",
                        Bytes(std::abs(static_cast<double>(bytes))), "</td></tr>\n");
  };
  std::string html = absl::StrCat("<table>\n", row("of the model", weights.model_bytes));
  for (const auto& [cause, bytes] : weights.causes) html += row(WeightCauseInWords(cause), bytes);
  return absl::StrCat(html, row("in the bundle", weights.bundle_bytes), "</table>\n");
}

// The kernel according to the fusion block's account, and what its binary says: "128 tasks, 2 phases, occupancy 38%
// (registers)".
std::string AccountInWords(const json& fusion_block) {
  std::vector<std::string> words;
  const auto count = [&](const char* key, const char* what, int64_t least) {
    const auto found = fusion_block.find(key);
    if (found == fusion_block.end() || !found->is_number_integer() || found->get<int64_t>() < least) return;
    const auto number = found->get<int64_t>();
    words.push_back(absl::StrCat(number, " ", what, number == 1 ? "" : "s"));
  };
  count("tasks", "task", 1);
  count("phases", "phase", 2);
  const json occupancy = fusion_block.value(fusion_block.contains("built") ? "built" : "occupancy", json());
  const json share = occupancy.is_object() ? occupancy.value("share", json()) : json();
  if (share.is_number()) {
    words.push_back(absl::StrFormat("occupancy %.0f%% (%s)", 100 * share.get<double>(), Text(occupancy, "limit")));
  }
  return absl::StrJoin(words, ", ");
}

std::string KernelTable(const Manifest& manifest, const json& fusion_blocks) {
  std::map<std::string, std::string> account_of;  // by the escaped name of a node
  for (const json& fusion_block : fusion_blocks) {
    for (const json& node : Items(fusion_block, "nodes")) account_of[Text(node, "name")] = AccountInWords(fusion_block);
  }
  account_of.erase("");
  std::string html =
      "<table>\n<tr><th>#</th><th>kernel</th><th>nodes</th><th>runs as</th><th class=\"n\">FLOPs</th>"
      "<th class=\"n\">bytes</th></tr>\n";
  for (size_t l = 0; l < manifest.launches.size(); ++l) {
    const Launch& launch = manifest.launches[l];
    absl::StrAppend(&html, "<tr><td class=\"n\">", l, "</td><td>", HtmlEscape(launch.label), "</td><td>",
                    HtmlEscape(absl::StrJoin(launch.nodes, ", ")), "</td><td>",
                    launch.nodes.empty() ? "" : account_of[HtmlEscape(launch.nodes[0])], "</td><td class=\"n\">",
                    Flops(launch.flops), "</td><td class=\"n\">", Bytes(static_cast<double>(launch.bytes)),
                    "</td></tr>\n");
  }
  return html + "</table>\n";
}

std::string DecisionTable(const json& decisions) {
  std::string html = "<table>\n<tr><th>decision</th><th>producer</th><th>consumer</th><th>reason</th></tr>\n";
  for (const json& decision : decisions) {
    const auto found = decision.find("fused");
    const bool fused = found != decision.end() && *found == true;
    const bool by_latency = Text(decision, "basis") == "latency";
    absl::StrAppend(&html, "<tr><td class=\"d\"><span class=\"dot ",
                    by_latency ? "latency"
                    : fused    ? "fused"
                               : "apart",
                    "\"></span>", fused ? "fused" : "apart", by_latency ? ", by latency" : ", by rule", "</td><td>",
                    Text(decision, "producer"), "</td><td>", Text(decision, "consumer"), "</td><td>",
                    Text(decision, "reason"), "</td></tr>\n");
  }
  return html + "</table>\n";
}

// The plans from which this one was chosen, of the first specialisation.
std::string PlanTable(const CompileAccount& account) {
  if (account.alternatives.empty()) return "";
  std::string html =
      "<h2>Plans</h2>\n<table>\n<tr><th>plan</th><th class=\"n\">launches</th><th class=\"n\">estimated</th>"
      "<th class=\"n\">measured as a whole</th><th class=\"n\">ratio, 95% confidence</th><th></th></tr>\n";
  const auto ms = [](double ns) { return absl::StrFormat("%.3f ms", ns * 1e-6); };
  for (const PlanAlternative& one : account.alternatives) {
    if (one.specialisation != account.alternatives[0].specialisation) break;
    const bool measured = one.rounds > 0;
    absl::StrAppend(&html, "<tr><td>", HtmlEscape(one.plan), one.chosen ? " (chosen)" : "", "</td><td class=\"n\">",
                    one.kernels, "</td><td class=\"n\">", ms(one.estimate_ns), "</td><td class=\"n\">",
                    measured ? ms(one.median_ns) : "no", "</td><td class=\"n\">",
                    measured ? absl::StrFormat("%.3f, %.3f–%.3f", one.ratio, one.ratio_low, one.ratio_high) : "",
                    "</td><td>", HtmlEscape(one.reason), "</td></tr>\n");
  }
  html += "</table>\n";
  if (!account.not_compared.empty())
    absl::StrAppend(&html, "<p>Not measured: ", HtmlEscape(account.not_compared), "</p>\n");
  return html;
}

std::string RewriteTable(const json& rewrites) {
  if (rewrites.empty()) return "<p>No rule fired.</p>\n";
  std::string html =
      "<table>\n<tr><th>rule</th><th>where</th><th class=\"n\">saves FLOP</th>"
      "<th class=\"n\">bytes</th></tr>\n";
  const auto number = [](const json& firing, const char* key, std::string (*words)(double)) {
    auto it = firing.find(key);
    if (it == firing.end() || !it->is_number()) return std::string();
    const double value = it->get<double>();
    return value < 0 ? "-" + words(-value) : words(value);
  };
  for (const json& firing : rewrites) {
    absl::StrAppend(&html, "<tr><td>", Text(firing, "rule"), "</td><td>", Text(firing, "where"),
                    "</td><td class=\"n\">", number(firing, "flops_saved", Flops), "</td><td class=\"n\">",
                    number(firing, "bytes_saved", Bytes), "</td></tr>\n");
  }
  return html + "</table>\n";
}

}  // namespace

std::string HtmlEscape(const std::string& text) {
  std::string html;
  html.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      case '\t':
      case '\n':
        html += c;
        break;
      default: {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f) {
          html += "\xef\xbf\xbd";
        } else {
          html += c;
        }
      }
    }
  }
  return html;
}

std::string ReportHtml(const Manifest& manifest, const CompileAccount& account) {
  json plan = json::parse(account.plan_json, nullptr, /*allow_exceptions=*/false);
  // The tables show the first specialisation.
  if (const json all = Items(plan, "specialisations"); !all.empty() && all[0].contains("plan")) plan = all[0]["plan"];
  const std::string name = HtmlEscape(manifest.model_name.empty() ? "model" : manifest.model_name);
  const int64_t whole = std::max(account.intermediate_bytes_before, account.intermediate_bytes_after);
  return absl::StrCat(
      kHead, "<title>", name, "</title></head><body>\n<h1>", name, "</h1>\n", Facts(manifest, account),
      "<h2>Intermediate results</h2>\n<table>\n", Bar("every operator alone", account.intermediate_bytes_before, whole),
      Bar("as planned", account.intermediate_bytes_after, whole), "</table>\n<h2>Weights</h2>\n",
      WeightTable(account.weights), PlanTable(account), "<h2>Kernels</h2>\n",
      KernelTable(manifest, Items(plan, "fusion_blocks")), "<h2>Rewrites</h2>\n", RewriteTable(Items(plan, "rewrites")),
      "<h2>Fusion decisions</h2>\n<p>", account.fused_by_rule, " fused by rule, ", account.fused_by_latency,
      " fused by latency, ", account.kept_by_latency, " kept apart by latency, ", account.kept_by_rule,
      " kept apart by rule.</p>\n", DecisionTable(Items(plan, "decisions")), "</body></html>\n");
}

}  // namespace fusion
