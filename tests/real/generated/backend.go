// A program of a backend, on a client that oapi-codegen made. It receives the message about a user that it creates.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"vestibule/real/api"
)

type message struct {
	Type string `json:"type"`
	Data struct {
		User api.UserRecord `json:"user"`
	} `json:"data"`
}

func must[T any](answer T, err error) T {
	if err != nil {
		panic(err)
	}
	return answer
}

func main() {
	ctx, url, key, address, secret := context.Background(), os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	webhook, messages := must(standardwebhooks.NewWebhook(secret)), make(chan message)
	receive := func(answer http.ResponseWriter, request *http.Request) {
		body := must(io.ReadAll(request.Body))
		if webhook.Verify(body, request.Header) != nil {
			answer.WriteHeader(http.StatusUnauthorized)
			return
		}
		var received message
		if err := json.Unmarshal(body, &received); err != nil {
			panic(err)
		}
		messages <- received
		answer.WriteHeader(http.StatusNoContent)
	}
	go http.Serve(must(net.Listen("tcp", address)), http.HandlerFunc(receive))

	bearer := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+key)
		return nil
	}
	client := must(api.NewClientWithResponses(url, api.WithRequestEditorFn(bearer)))
	email, reason, dry := "grace@example.com", "a test", true
	created := must(client.CreateUserWithResponse(ctx, api.NewUserRequest{Email: &email}))
	if created.JSON201 == nil {
		panic(string(created.Body))
	}
	told := <-messages
	if told.Data.User.Id != created.JSON201.Id {
		panic("another user")
	}
	found := must(client.FindUsersWithResponse(ctx, &api.FindUsersParams{Q: &email}))
	tried := must(client.DisableUserWithResponse(ctx, told.Data.User.Id, api.ChangeRequest{Reason: reason, DryRun: &dry}))
	unknown := must(client.GetUserWithResponse(ctx, uuid.New()))
	fmt.Println(*found.JSON200.Users[0].Email, tried.JSON200.Applied,
		unknown.ApplicationproblemJSON404.Error, told.Type)
}
