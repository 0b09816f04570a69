// What this host has that a migration needs: CANN, atc, NPUs, the op plugin, Python and its packages. Everything is read from
// files, and from what npu-smi and python3 print; nothing has to be there.
#pragma once

#include <string>
#include <vector>

namespace ascend_fuse {

struct CannInstall {
  std::string folder;   // /usr/local/Ascend/ascend-toolkit/latest
  std::string version;  // "8.1.RC1", as its file says
  std::string file;     // that says it
  std::string option;   // the value of --cann that has its data; "" where there is none
};

struct Npu {
  std::string name;         // as npu-smi says: 910B3
  std::string soc_version;  // Ascend910B3
  std::string target;       // the chip of --target; "" where there is none
  int count = 0;
};

struct PythonPackage {
  std::string name;
  std::string version;  // "": it is missing
};

struct Host {
  std::vector<CannInstall> canns;
  std::string atc;           // the path of atc; "" where there is none
  bool atc_in_path = false;  // it can be called by its name
  std::string npu_smi;       // "", or what became of it: "25.5.1", "does not answer"
  std::vector<Npu> npus;
  std::string driver;                // its version
  std::vector<std::string> plugins;  // the op plugin's libraries
  std::string python;                // its path
  std::string python_version;        // "": it does not run
  std::vector<PythonPackage> packages;
};

// Files are looked for in `root` (the folder "/" but for tests) and where the variables of CANN's set_env.sh point to.
Host LookAtHost(const std::string& root, const std::string& python);

}  // namespace ascend_fuse
