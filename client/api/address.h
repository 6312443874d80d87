// The server's address when nobody names it, and the folders of the client.
#ifndef FUSION_CLIENT_API_ADDRESS_H_
#define FUSION_CLIENT_API_ADDRESS_H_

#include <string>

namespace fusion {

std::string StateFolder();  // $XDG_STATE_HOME/fusion, else ~/.local/state/fusion
std::string CacheFolder();  // $XDG_CACHE_HOME/fusion, else ~/.cache/fusion

// `flag` if not empty, else $FUSION_SERVER, else the local socket: "unix:<state folder>/fusion.sock".
std::string ServerAddress(const std::string& flag);

}  // namespace fusion

#endif  // FUSION_CLIENT_API_ADDRESS_H_
