package redis

import (
	"embed"
	"strings"

	client "github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var files embed.FS

var (
	acquireScript      = script("acquire")
	releaseScript      = script("release")
	extendScript       = script("extend")
	inspectScript      = script("inspect")
	forceReleaseScript = script("force_release")
)

// script is a file with time.lua before it; both without their comments, which
// are for readers of the files.
func script(name string) *client.Script {
	var text strings.Builder
	for _, file := range []string{"lua/time.lua", "lua/" + name + ".lua"} {
		content, err := files.ReadFile(file)
		if err != nil {
			panic(err) // a file of this folder is not embedded
		}
		for line := range strings.Lines(string(content)) {
			if !strings.HasPrefix(line, "--") {
				text.WriteString(line)
			}
		}
	}
	return client.NewScript(text.String())
}
