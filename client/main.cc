// fusionctl. The only file that knows the option parser.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "client/cli/exit_codes.h"
#include "client/cli/interrupt.h"
#include "client/cli/verb.h"
#include "proto/channel/endpoint.h"
#include "runtime/base/user_folders.h"

namespace {

void Declare(CLI::App* app, fusion::Option& option) {
  CLI::Option* declared = nullptr;
  if (auto* flag = std::get_if<bool*>(&option.target)) {
    declared = app->add_flag(option.names, **flag, option.help);
  } else if (auto* text = std::get_if<std::string*>(&option.target)) {
    declared = app->add_option(option.names, **text, option.help);
    if (!(*text)->empty()) declared->capture_default_str();
  } else if (auto* number = std::get_if<int64_t*>(&option.target)) {
    declared =
        app->add_option(option.names, **number, option.help)->check(CLI::NonNegativeNumber)->capture_default_str();
  } else if (auto* list = std::get_if<std::vector<std::string>*>(&option.target)) {
    // Each occurrence takes one value, so that a positional may follow.
    declared = app->add_option(option.names, **list, option.help)->expected(1)->take_all()->allow_extra_args(false);
  }
  if (option.required) declared->required();
  if (!option.choices.empty()) declared->check(CLI::IsMember(option.choices));
}

// Returns the words that should be a command but are none: "frob", "job frob". Empty if there are no such words.
std::string UnknownCommand(const CLI::App& app) {
  std::string words;
  const CLI::App* parsed = &app;
  while (!parsed->get_subcommands().empty()) {
    parsed = parsed->get_subcommands()[0];
    words += parsed->get_name() + " ";
  }
  if (parsed->get_require_subcommand_min() == 0) return "";  // a command's argument is missing instead
  for (const std::string& rest : app.remaining(true)) {
    if (rest.empty() || rest[0] != '-') return words + rest;
  }
  return "";
}

void AddConnectFlags(CLI::App* app, fusion::ConnectFlags* flags) {
  app->add_option(
      "--server", flags->server,
      "address of fusiond (default: $FUSION_SERVER, else that of the configuration, else the local socket)");
  app->add_option("--tls-ca", flags->tls_ca,
                  "PEM file with the authorities that the server's certificate may come from [$FUSION_TLS_CA]");
  app->add_option("--tls-cert", flags->tls_cert, "PEM file with this user's certificate [$FUSION_TLS_CERT]");
  app->add_option("--tls-key", flags->tls_key, "PEM file with its key, mode 0600 [$FUSION_TLS_KEY]");
  app->add_option("--token-file", flags->token_file,
                  "file with this user's token, mode 0600 [$FUSION_TOKEN_FILE; $FUSION_TOKEN is the token itself]");
  app->add_flag("--insecure", flags->insecure, "speak to HOST:PORT without TLS, and send no token [FUSION_INSECURE=1]");
}

// The command line or the configuration is wrong, not a model.
int FailConnect(const absl::Status& status) {
  return fusion::Fail(absl::IsPermissionDenied(status) ? status : fusion::UsageError(std::string(status.message())));
}

int Main(int argc, char** argv) {
  fusion::StartInterruptWatch();
  CLI::App app("Compiles ONNX models into fused kernels on a fusiond, and runs the results.", "fusionctl");
  app.require_subcommand(1);
  app.set_version_flag("--version", "fusionctl " FUSION_VERSION);
  app.fallthrough();
  app.footer(
      "Exit codes: 0 ok, 1 failed, 2 usage, 3 invalid model or bundle, 4 auth, 5 server unavailable, 6 timeout,\n"
      "7 no matching worker, 8 quota, 9 verification failed, 130 interrupted.");
  fusion::CommonOptions common;
  common.progress = "auto";
  fusion::ConnectFlags connect;
  AddConnectFlags(&app, &connect);
  app.add_option("--progress", common.progress, "how progress is shown")
      ->check(CLI::IsMember({"auto", "tty", "plain", "none"}))
      ->capture_default_str();

  std::vector<std::unique_ptr<fusion::Verb>> verbs = fusion::AllVerbs();
  std::vector<std::vector<fusion::Option>> options;
  std::map<CLI::App*, fusion::Verb*> by_command;
  std::map<std::string, CLI::App*> groups;
  for (auto& verb : verbs) {
    const std::string name = verb->name();
    CLI::App* parent = &app;
    size_t begin = 0;  // of the word behind the groups
    for (size_t space; (space = name.find(' ', begin)) != std::string::npos; begin = space + 1) {
      CLI::App*& group = groups[name.substr(0, space)];
      if (group == nullptr) {
        group = parent->add_subcommand(name.substr(begin, space - begin));
        group->require_subcommand(1);
        group->fallthrough();
      }
      parent = group;
      const std::string so_far = group->get_description();
      group->description(so_far + (so_far.empty() ? "" : ", ") + name.substr(space + 1));
    }
    CLI::App* command = parent->add_subcommand(name.substr(begin), verb->help());
    command->fallthrough();
    options.push_back(verb->Options());
    for (fusion::Option& option : options.back()) Declare(command, option);
    by_command[command] = verb.get();
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return app.exit(help);
  } catch (const CLI::RequiredError& error) {
    // The parser reports a missing command before it looks at the unknown word.
    const std::string unknown = UnknownCommand(app);
    if (unknown.empty()) app.exit(error);
    if (!unknown.empty()) std::cerr << "fusionctl: no command '" << unknown << "'; fusionctl --help lists them\n";
    return fusion::kExitUsage;
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return fusion::kExitUsage;
  }
  for (const auto& [command, verb] : by_command) {
    if (!command->parsed()) continue;
    if (verb->UsesServer()) {
      absl::StatusOr<fusion::Endpoint> endpoint = fusion::ResolveEndpoint(connect, fusion::UserStateFolder());
      if (!endpoint.ok()) return FailConnect(endpoint.status());
      common.endpoint = *std::move(endpoint);
    }
    return verb->Run(common);
  }
  return fusion::kExitUsage;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {  // from the argument parser, or out of memory
    std::fprintf(stderr, "fusionctl: %s\n", error.what());
    return 1;
  }
}
