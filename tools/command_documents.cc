#include "tools/command_documents.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "patterns/target/target.h"
#include "tools/config_file.h"
#include "tools/exit_codes.h"

namespace ascend_fuse {
namespace {

// What man and the shells take for their own: - and \ in man, a dot or an apostrophe at the start of a line.
std::string ForMan(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
      out += c;
    }
  }
  return out;
}

// In single quotes of a shell.
std::string Quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::vector<std::string> FlagsOf(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  return flags;
}

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// The options that have flags, in the order in which help lists them.
std::vector<const CLI::Option*> FlagOptions(const CLI::App& app) {
  std::vector<const CLI::Option*> options;
  for (const CLI::Option* option : app.get_options()) {
    if (option->nonpositional()) options.push_back(option);
  }
  return options;
}

std::vector<std::string> AllFlags(const CLI::App& app) {
  std::vector<std::string> all;
  for (const CLI::Option* option : FlagOptions(app)) {
    for (std::string& flag : FlagsOf(*option)) all.push_back(std::move(flag));
  }
  for (const CLI::App* part : app.get_subcommands({})) {
    for (std::string& flag : AllFlags(*part)) {
      if (std::find(all.begin(), all.end(), flag) == all.end()) all.push_back(std::move(flag));
    }
  }
  return all;
}

// The words there are for a flag's value; none for a file or a free text.
std::vector<std::string> WordsOf(std::string_view flag) {
  if (flag == "--target") return Target::Chips();
  if (flag == "--cann") return Target::CannVersions();
  if (flag == "--style") return {"D", "N", "X"};
  return {};
}

// The words there are for the first argument of a command; none for a file.
std::vector<std::string> WordsOfArgument(std::string_view command) {
  if (command == "completion") return {"bash", "zsh", "fish"};
  if (command == "targets") return Target::Chips();
  return {};
}

std::string Joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

std::vector<std::string> PartsOf(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* part : command.get_subcommands({})) names.push_back(part->get_name());
  return names;
}

std::string Bash(const CLI::App& app) {
  std::vector<std::string> commands;
  std::string cases, parts;
  for (const CLI::App* command : app.get_subcommands({})) {
    auto names = PartsOf(*command);
    if (names.empty()) names = WordsOfArgument(command->get_name());
    if (!names.empty()) {
      parts += fmt::format(
          "  if [[ $COMP_CWORD -eq 2 && ${{COMP_WORDS[1]}} == {} && $word != -* ]]; then\n"
          "    COMPREPLY=($(compgen -W {} -- \"$word\"))\n    return\n  fi\n",
          command->get_name(), Quoted(fmt::format("{}", fmt::join(names, " "))));
    }
    commands.push_back(command->get_name());
    cases +=
        fmt::format("    {}) flags={} ;;\n", command->get_name(), Quoted(fmt::format("{}", fmt::join(AllFlags(*command), " "))));
  }
  std::string words;
  for (const char* flag : {"--target", "--cann", "--style"}) {
    words += fmt::format("    {}) COMPREPLY=($(compgen -W {} -- \"$word\")); return ;;\n", flag,
                         Quoted(fmt::format("{}", fmt::join(WordsOf(flag), " "))));
  }
  return fmt::format(R"(# Completion of ascend-fuse for bash; written by `ascend-fuse completion bash`.
_ascend_fuse() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} flags=''
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W {} -- "$word"))
    return
  fi
{}  case ${{COMP_WORDS[COMP_CWORD-1]}} in
{}  esac
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _ascend_fuse ascend-fuse
)",
                     Quoted(fmt::format("{} --help --version --config --explain-exit", fmt::join(commands, " "))), parts, words,
                     cases);
}

// A command's flags, and its parts (`rules new`) with theirs.
std::string FishCommand(const CLI::App& command, const std::string& condition) {
  std::string text;
  const std::string& name = command.get_name();
  text += fmt::format("complete -c ascend-fuse -n {} -f -a {} -d {}\n", condition, name, Quoted(command.get_description()));
  for (const CLI::App* part : command.get_subcommands({}))
    text += FishCommand(*part, Quoted("__fish_seen_subcommand_from " + name));
  if (const auto words = WordsOfArgument(name); !words.empty()) {
    text += fmt::format("complete -c ascend-fuse -n '__fish_seen_subcommand_from {}' -f -a {}\n", name, Quoted(Joined(words)));
  }
  for (const CLI::Option* option : FlagOptions(command)) {
    text += fmt::format("complete -c ascend-fuse -n '__fish_seen_subcommand_from {}'", name);
    for (const std::string& flag : option->get_snames()) text += " -s " + flag;
    for (const std::string& flag : option->get_lnames()) text += " -l " + flag;
    if (TakesValue(*option)) text += " -r";
    const auto words = option->get_lnames().empty() ? std::vector<std::string>() : WordsOf("--" + option->get_lnames().front());
    if (!words.empty()) text += fmt::format(" -f -a {}", Quoted(fmt::format("{}", fmt::join(words, " "))));
    text += fmt::format(" -d {}\n", Quoted(option->get_description()));
  }
  return text;
}

std::string Fish(const CLI::App& app) {
  std::string text = "# Completion of ascend-fuse for fish; written by `ascend-fuse completion fish`.\n";
  for (const CLI::App* command : app.get_subcommands({})) text += FishCommand(*command, "__fish_use_subcommand");
  for (const CLI::Option* option : FlagOptions(app)) {
    for (const std::string& flag : option->get_lnames()) {
      text +=
          fmt::format("complete -c ascend-fuse -n __fish_use_subcommand -l {} -d {}\n", flag, Quoted(option->get_description()));
    }
  }
  return text;
}

// Names with what they mean, as _describe of zsh takes them.
std::string Described(const std::vector<std::pair<std::string, std::string>>& all) {
  std::string text;
  for (const auto& [name, meaning] : all) text += fmt::format(" {}", Quoted(fmt::format("{}:{}", name, meaning)));
  return text;
}

// Flags of a command and of its parts.
void AddDescribedFlags(const CLI::App& command, std::vector<std::pair<std::string, std::string>>* flags) {
  for (const CLI::Option* option : FlagOptions(command)) {
    for (const std::string& flag : FlagsOf(*option)) {
      const bool known = std::any_of(flags->begin(), flags->end(), [&](const auto& other) { return other.first == flag; });
      if (!known) flags->emplace_back(flag, option->get_description());
    }
  }
  for (const CLI::App* part : command.get_subcommands({})) AddDescribedFlags(*part, flags);
}

std::string Zsh(const CLI::App& app) {
  std::vector<std::pair<std::string, std::string>> commands, own;
  std::string cases, arguments, words;
  for (const CLI::Option* option : FlagOptions(app)) {
    for (const std::string& flag : FlagsOf(*option)) own.emplace_back(flag, option->get_description());
  }
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string& name = command->get_name();
    commands.emplace_back(name, command->get_description());
    std::vector<std::pair<std::string, std::string>> flags, parts;
    AddDescribedFlags(*command, &flags);
    cases += fmt::format("    {}) all=({}) ;;\n", name, Described(flags));
    for (const CLI::App* part : command->get_subcommands({})) parts.emplace_back(part->get_name(), part->get_description());
    for (const std::string& word : WordsOfArgument(name)) parts.emplace_back(word, "");
    if (!parts.empty()) arguments += fmt::format("    {}) parts=({}) ;;\n", name, Described(parts));
  }
  for (const char* flag : {"--target", "--cann", "--style"})
    words += fmt::format("    {}) compadd -- {}; _files; return ;;\n", flag, Joined(WordsOf(flag)));
  return fmt::format(R"(#compdef ascend-fuse
# Completion of ascend-fuse for zsh; written by `ascend-fuse completion zsh`.
_ascend_fuse() {{
  local -a all parts
  if (( CURRENT == 2 )); then
    all=({})
    parts=({})
    if [[ $PREFIX == -* ]]; then
      _describe -o option parts
    else
      _describe command all
    fi
    return
  fi
  case $words[CURRENT-1] in
{}  esac
  case $words[2] in
{}  esac
  if [[ $PREFIX == -* ]]; then
    _describe -o option all
    return
  fi
  if (( CURRENT == 3 )); then
    case $words[2] in
{}    esac
    (( $#parts )) && _describe argument parts
  fi
  _files
}}
# Found in fpath it is called; read by `source` it is registered.
if [[ $funcstack[1] == _ascend-fuse ]]; then
  _ascend_fuse "$@"
else
  compdef _ascend_fuse ascend-fuse
fi
)",
                     Described(commands), Described(own), words, cases, arguments);
}

std::string ManOptions(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : FlagOptions(app)) {
    std::string value;
    if (TakesValue(*option)) value = fmt::format(" \\fI{}\\fR", ForMan(option->get_type_name()));
    std::vector<std::string> flags;
    for (const std::string& flag : FlagsOf(*option)) flags.push_back(fmt::format("\\fB{}\\fR", ForMan(flag)));
    text += fmt::format(".TP\n{}{}\n{}\n", fmt::join(flags, ", "), value, ForMan(option->get_description()));
  }
  return text;
}

// What follows the name of a command: its arguments, what it does, its flags.
std::string ManCommand(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    if (option->nonpositional()) continue;
    text += option->get_required() ? fmt::format(" {}", ForMan(option->get_name()))
                                   : fmt::format(" [{}]", ForMan(option->get_name()));
  }
  text += fmt::format("\n{}\n{}", ForMan(command.get_description()), ManOptions(command));
  if (!command.get_footer().empty()) text += fmt::format(".PP\n{}\n", ForMan(command.get_footer()));
  return text;
}

}  // namespace

std::string ManPage(const CLI::App& app, const std::string& version) {
  std::string text = fmt::format(".TH ASCEND\\-FUSE 1 \"\" \"ascend\\-fuse {}\" \"User Commands\"\n", ForMan(version));
  text += fmt::format(
      ".SH NAME\nascend\\-fuse \\- exported ONNX in, the same model with Ascend NPU nodes out\n"
      ".SH SYNOPSIS\n.B ascend\\-fuse\n.I command\n.RI [ arguments ]\n.SH DESCRIPTION\n{}\n.SH COMMANDS\n",
      ForMan(app.get_description()));
  for (const CLI::App* command : app.get_subcommands({})) {
    text += fmt::format(".SS {}{}", ForMan(command->get_name()), ManCommand(*command));
    for (const CLI::App* part : command->get_subcommands({})) {
      text += fmt::format(".PP\n\\fB{} {}\\fR{}", ForMan(command->get_name()), ForMan(part->get_name()), ManCommand(*part));
    }
  }
  text += ".SH OPTIONS\n" + ManOptions(app) + ".SH EXIT STATUS\n";
  for (const ExitCode& row : ExitCodes())
    text += fmt::format(".TP\n{}\n{}. {}\n", row.code, ForMan(row.meaning), ForMan(row.what_to_do));
  text += ".SH ENVIRONMENT\n";
  for (const auto& [variable, key] : ConfigVariables())
    text += fmt::format(".TP\n\\fB{}\\fR\nas \\fB\\-\\-{}\\fR, where that is not given{}\n", variable, ForMan(key),
                        key == "rules" ? "; several files have : between them" : "");
  text += fmt::format(".TP\n\\fB{}\\fR\nneither these variables nor \\fI{}\\fR are read\n", kNoConfig, ForMan(kConfigName));
  return text +
         fmt::format(
             ".SH FILES\n.TP\n\\fI{}\\fR\nin the current folder: options of all commands, and in sections [command] those of "
             "one; flags and variables win over it\n",
             ForMan(kConfigName));
}

std::string Completion(const CLI::App& app, const std::string& shell) {
  if (shell == "bash") return Bash(app);
  if (shell == "fish") return Fish(app);
  if (shell == "zsh") return Zsh(app);
  return "";
}

}  // namespace ascend_fuse
