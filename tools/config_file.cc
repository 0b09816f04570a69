#include "tools/config_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/onnx/whole_file.h"
#include "ir/status_macros.h"
#include "patterns/edit_distance.h"

namespace ascend_fuse {
namespace {

struct Setting {        // one key of the file
  std::string section;  // "optimize", "rules.test"; "" for all commands
  std::string key;
  std::vector<std::string> values;
  size_t line = 0;
};

// The line without a comment; CLI11 would cut the line at a # in quotes as well, so that is an error.
absl::StatusOr<std::string> WithoutComment(std::string_view line) {
  char quote = '\0';
  for (size_t i = 0; i < line.size(); ++i) {
    if (quote == '\0' && line[i] == '#') return std::string(line.substr(0, i));
    if (quote != '\0' && line[i] == '#') return absl::InvalidArgumentError("a value cannot have a # in it; give it as a flag");
    if (quote == '\0' && (line[i] == '"' || line[i] == '\'')) {
      quote = line[i];
    } else if (line[i] == quote) {
      quote = '\0';
    }
  }
  if (quote != '\0') return absl::InvalidArgumentError("a quotation mark is missing");
  return std::string(line);
}

// What CLI11 would read as something else without a word: values without quotes that TOML does not know.
absl::Status CheckValue(std::string_view value) {
  if (value.empty()) return absl::InvalidArgumentError("a value is missing after =");
  const char first = value.front();
  if (first == '"' || first == '\'' || first == '[' || value == "true" || value == "false") return absl::OkStatus();
  if (value.find_first_not_of("0123456789+-._eE") == std::string_view::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("a text stands in quotes: \"{}\"", value));
}

// The lines as CLI11 is to read them, and where each key stands.
class Lines {
 public:
  absl::Status Read(const std::string& path, const std::string& text) {
    size_t number = 0;
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      if (const auto status = Take({line.data(), line.size()}, ++number); !status.ok())
        return absl::InvalidArgumentError(fmt::format("{}:{}: {}", path, number, std::string(status.message())));
    }
    if (in_list_) return absl::InvalidArgumentError(fmt::format("{}:{}: the list is not closed with ]", path, number));
    return absl::OkStatus();
  }

  const std::string& cleaned() const { return cleaned_; }
  size_t LineOf(const std::string& section, const std::string& key) const {
    const auto found = lines_.find(section + "\n" + key);
    return found == lines_.end() ? 0 : found->second;
  }

 private:
  absl::Status Take(std::string_view given, size_t number) {
    ASSIGN_OR_RETURN(std::string without, WithoutComment(given));
    std::string line(absl::StripAsciiWhitespace(without));
    if (line.empty()) return absl::OkStatus();
    const size_t equals = line.find('=');
    if (!in_list_ && line.front() == '[') {
      if (line.back() != ']' || line.size() < 3) return absl::InvalidArgumentError("expected [command]");
      section_ = line.substr(1, line.size() - 2);
    } else if (!in_list_) {
      if (equals == 0 || equals == std::string::npos) return absl::InvalidArgumentError("expected key = value");
      const std::string key(absl::StripAsciiWhitespace(line.substr(0, equals)));
      const std::string value(absl::StripAsciiWhitespace(line.substr(equals + 1)));
      RETURN_IF_ERROR(CheckValue(value));
      if (key.find_first_of("\"'.") != std::string::npos)
        return absl::InvalidArgumentError("expected key = value, the key without quotes or dots");
      if (!lines_.emplace(section_ + "\n" + key, number).second)
        return absl::InvalidArgumentError(fmt::format("{} stands here twice", key));
      in_list_ = value.front() == '[';
      line = fmt::format("{} = {}", key, value);
    }
    if (in_list_ && line.back() == ']') in_list_ = false;
    cleaned_ += line + "\n";
    return absl::OkStatus();
  }

  std::string cleaned_;
  std::string section_;
  std::map<std::string, size_t> lines_;
  bool in_list_ = false;
};

absl::StatusOr<std::vector<Setting>> ReadSettings(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  Lines lines;
  RETURN_IF_ERROR(lines.Read(path, text));
  std::istringstream stream(lines.cleaned());
  std::vector<Setting> settings;
  for (CLI::ConfigItem& item : CLI::ConfigTOML().from_config(stream)) {
    if (item.name == "++" || item.name == "--") continue;  // begin and end of a section
    Setting setting{fmt::format("{}", fmt::join(item.parents, ".")), item.name, {}, 0};
    setting.line = lines.LineOf(setting.section, setting.key);
    for (std::string& value : item.inputs) {
      if (!value.empty()) setting.values.push_back(std::move(value));
    }
    settings.push_back(std::move(setting));
  }
  return settings;
}

// All commands by their names, "rules" and "rules test".
void AddCommands(CLI::App* app, const std::string& prefix, std::vector<std::pair<std::string, CLI::App*>>* commands) {
  for (CLI::App* command : app->get_subcommands({})) {
    commands->emplace_back(prefix + command->get_name(), command);
    AddCommands(command, prefix + command->get_name() + ".", commands);
  }
}

CLI::Option* FindOption(CLI::App* command, const std::string& key) {
  CLI::Option* option = command->get_option_no_throw("--" + key);
  return key == "help" || option == nullptr ? nullptr : option;
}

// The name of the list that is nearest, as a question; "" where nothing is near.
std::string DidYouMean(const std::string& name, const std::vector<std::string>& names) {
  const auto nearest = std::min_element(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return EditDistance(name, a) < EditDistance(name, b);
  });
  if (nearest == names.end() || EditDistance(name, *nearest) > 2 + nearest->size() / 4) return "";
  return fmt::format("; did you mean {}?", *nearest);
}

using NamedCommands = std::vector<std::pair<std::string, CLI::App*>>;

// Keys of this section, or of all commands.
std::vector<std::string> KeysOf(const NamedCommands& commands, const std::string& section) {
  std::vector<std::string> keys;
  for (const auto& [name, command] : commands) {
    if (!section.empty() && name != section) continue;
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& key : option->get_lnames()) {
        if (key != "help") keys.push_back(key);
      }
    }
  }
  return keys;
}

// Every key means something to a command, whichever runs now.
absl::Status CheckSettings(const std::string& path, const std::vector<Setting>& settings, const NamedCommands& commands) {
  for (const Setting& setting : settings) {
    const bool known_section = setting.section.empty() || std::any_of(commands.begin(), commands.end(), [&](const auto& command) {
                                 return command.first == setting.section;
                               });
    if (!known_section) {
      std::vector<std::string> names;
      for (const auto& [name, command] : commands) names.push_back(name);
      return absl::InvalidArgumentError(fmt::format("{}:{}: there is no command {} for the section [{}]{}", path, setting.line,
                                                    setting.section, setting.section, DidYouMean(setting.section, names)));
    }
    const std::vector<std::string> keys = KeysOf(commands, setting.section);
    if (std::find(keys.begin(), keys.end(), setting.key) == keys.end()) {
      return absl::InvalidArgumentError(fmt::format("{}:{}: {} is not an option of {}{}", path, setting.line, setting.key,
                                                    setting.section.empty() ? "any command" : "ascend-fuse " + setting.section,
                                                    DidYouMean(setting.key, keys)));
    }
  }
  return absl::OkStatus();
}

// As if the values had been given as flags.
absl::Status Give(CLI::Option* option, const std::string& key, const std::vector<std::string>& values, const std::string& place) {
  try {
    if (option->get_items_expected_max() == 0) {  // a switch
      const std::string value = values.empty() ? "" : values[0];
      if (values.size() != 1 || (value != "true" && value != "false" && value != "1" && value != "0")) {
        return absl::InvalidArgumentError(fmt::format("{}: {} takes true or false", place, key));
      }
      if (value == "false" || value == "0") return absl::OkStatus();
      option->add_result("true");
    } else {
      option->add_result(values);
    }
    option->run_callback();
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", place, error.what()));
  }
  return absl::OkStatus();
}

absl::Status ApplyTo(CLI::App* command, const std::string& name, const std::string& path, const std::vector<Setting>& settings) {
  for (const auto& [variable, key] : ConfigVariables()) {
    CLI::Option* option = FindOption(command, std::string(key));
    const char* value = getenv(std::string(variable).c_str());
    if (option == nullptr || option->count() > 0 || value == nullptr || *value == '\0') continue;
    std::vector<std::string> values = {value};
    if (key == "rules") values = absl::StrSplit(absl::StripSuffix(value, ":"), ':');
    RETURN_IF_ERROR(Give(option, std::string(key), values, std::string(variable)));
  }
  // The section of a command wins over what is said of all commands.
  for (const bool of_section : {true, false}) {
    for (const Setting& setting : settings) {
      if (setting.section != (of_section ? name : "")) continue;
      CLI::Option* option = FindOption(command, setting.key);
      if (option == nullptr || option->count() > 0) continue;
      const bool decided = !of_section && std::any_of(settings.begin(), settings.end(), [&](const Setting& other) {
        return other.section == name && other.key == setting.key;
      });
      if (decided) continue;  // with false
      RETURN_IF_ERROR(Give(option, setting.key, setting.values, fmt::format("{}:{}", path, setting.line)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

const std::vector<std::pair<std::string_view, std::string_view>>& ConfigVariables() {
  static const auto* const kVariables = new std::vector<std::pair<std::string_view, std::string_view>>{
      {"ASCEND_FUSE_TARGET", "target"}, {"ASCEND_FUSE_CANN", "cann"},
      {"ASCEND_FUSE_PLUGIN", "plugin"}, {"ASCEND_FUSE_PRECISION_MODE", "precision-mode"},
      {"ASCEND_FUSE_STYLE", "style"},   {"ASCEND_FUSE_RULES", "rules"},
      {"ASCEND_FUSE_JOBS", "jobs"},     {"ASCEND_FUSE_PROGRESS", "progress"}};
  return *kVariables;
}

absl::Status ApplyConfig(CLI::App* app, const std::string& given, std::string* read) {
  std::vector<Setting> settings;
  NamedCommands commands;
  AddCommands(app, "", &commands);
  const std::string path = given.empty() ? std::string(kConfigName) : given;
  if (!given.empty() || access(path.c_str(), F_OK) == 0) {
    ASSIGN_OR_RETURN(settings, ReadSettings(path));
    RETURN_IF_ERROR(CheckSettings(path, settings, commands));
    *read = path;
  }
  for (const auto& [name, command] : commands) {
    if (!command->parsed()) continue;
    RETURN_IF_ERROR(ApplyTo(command, name, path, settings));
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
