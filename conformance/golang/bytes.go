package main

import (
	"encoding/hex"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// answerBytes reads bytes in the JSON form of a protobuf message.
func answerBytes(q question) string {
	text, err := json.Marshal(q.Text)
	if err != nil {
		return "error"
	}
	var message wrapperspb.BytesValue
	if err := protojson.Unmarshal(text, &message); err != nil {
		return "error"
	}
	return hex.EncodeToString(message.Value)
}
