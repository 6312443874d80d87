// Where programs of this project keep a user's files when nobody names a folder, by the XDG base directory specification,
// and where they look for the server. Server, worker and client must agree, or they would not find each other's socket.
#ifndef FUSION_RUNTIME_BASE_USER_FOLDERS_H_
#define FUSION_RUNTIME_BASE_USER_FOLDERS_H_

#include <string>

namespace fusion {

// $XDG_STATE_HOME/fusion, else ~/.local/state/fusion. A variable that holds no absolute path is ignored, as the
// specification demands. Without $HOME, /tmp takes its place.
std::string UserStateFolder();

// $XDG_CACHE_HOME/fusion, else ~/.cache/fusion; the same rules.
std::string UserCacheFolder();

// $XDG_CONFIG_HOME/fusion, else ~/.config/fusion; the same rules.
std::string UserConfigFolder();

// $FUSION_SERVER, else the socket of a server with this state folder: "unix:<folder>/fusion.sock".
std::string DefaultServerAddress(const std::string& state_folder);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_USER_FOLDERS_H_
