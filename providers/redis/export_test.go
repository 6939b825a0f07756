package redis

import (
	"context"
	"errors"
)

// Calendar writes a time as the scripts do, and reads it back.
func (p *Provider) Calendar(ctx context.Context, ms int64) (text string, back int64, err error) {
	time, err := files.ReadFile("lua/time.lua")
	if err != nil {
		return "", 0, err
	}
	answer, err := p.client.Eval(ctx, string(time)+`
		local text = iso(tonumber(ARGV[1]))
		return {text, added('ADDED:' .. text .. '@x')}`, nil, ms).Slice()
	if err != nil {
		return "", 0, err
	}
	text, ok1 := answer[0].(string)
	back, ok2 := answer[1].(int64)
	if !ok1 || !ok2 {
		err = errors.New("an answer of another form")
	}
	return text, back, err
}

// Scripts are those of a winner, for comparison with the bare client.
func Scripts() (acquire, release string) { return acquireScript.Hash(), releaseScript.Hash() }
