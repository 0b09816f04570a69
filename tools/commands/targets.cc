// targets and plugin: what a chip accepts, and the op plugin as source.
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <string>

#include "absl/status/statusor.h"
#include "fmt/format.h"
#include "patterns/target/plugin_source.h"
#include "patterns/target/target.h"
#include "tools/commands/command.h"

namespace ascend_fuse {
namespace {

struct TargetsFlags {
  std::string chip;
  std::string op;
  TargetOptions target;
};

struct PluginFlags {
  std::string output;
  PluginOptions options;
};

int RunTargets(const TargetsFlags& flags) {
  if (flags.chip.empty()) return Done(WriteText("-", Target::DescribeAll()));
  TargetOptions options = flags.target;
  options.chip = flags.chip;
  const auto target = Target::Load(options);
  if (!target.ok()) return Fail(target.status(), kUsage);
  const auto text = flags.op.empty() ? absl::StatusOr<std::string>(target->Describe()) : target->DescribeOperator(flags.op);
  return text.ok() ? Done(WriteText("-", *text)) : Fail(text.status());
}

int RunPlugin(const PluginFlags& flags) {
  const auto files = PluginFiles(flags.options);
  if (!files.ok()) return Fail(files.status(), kUsage);
  if (const auto status = MakeFolder(flags.output); !status.ok()) return Fail(status);
  for (const PluginFile& file : *files) {
    const std::string path = fmt::format("{}/{}", flags.output, file.path);
    if (const auto status = WriteText(path, file.text); !status.ok()) return Fail(status);
    if (file.executable && chmod(path.c_str(), 0755) != 0) {
      return Fail(fmt::format("{} cannot be made executable: {}", path, strerror(errno)));
    }
  }
  fmt::print("wrote {}, version {} of the op plugin; its README.md says how it is built and installed\n", flags.output,
             PluginVersion());
  return kDone;
}

}  // namespace

void AddTargets(Commands* commands) {
  auto* flags = commands->New<TargetsFlags>();
  CLI::App* targets = commands->app()->add_subcommand("targets", "list the chips and CANN versions, or what one of them accepts");
  targets->add_option("chip", flags->chip, "a chip, an ATC --soc_version, or a path to a .txtpb");
  targets->add_option("operator", flags->op, "an NPU node or a standard operator: what is known of it there");
  targets->add_option("--cann", flags->target.cann, "CANN version, or a path to a .txtpb")->capture_default_str();
  targets->add_flag("--plugin", flags->target.plugin, "with our op plugin installed");
  commands->Add(targets, [flags] { return RunTargets(*flags); });
}

void AddPlugin(Commands* commands) {
  auto* flags = commands->New<PluginFlags>();
  CLI::App* plugin =
      commands->app()->add_subcommand("plugin", "write the op plugin as source: parsers that let ATC read what --plugin emits");
  plugin->add_option("-o,--output", flags->output, "the folder that is written")->required()->type_name("FOLDER");
  plugin->add_option("--cann", flags->options.cann, "leave out what this CANN version has no operator for; default: nothing")
      ->type_name("VERSION");
  plugin->add_option("--nodes", flags->options.nodes, "parsers of these nodes only")
      ->type_name("NODE,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  commands->Add(plugin, [flags] { return RunPlugin(*flags); });
}

}  // namespace ascend_fuse
