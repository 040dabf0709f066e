// A program of an app, on a client that oapi-codegen made.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"vestibule/real/api"
)

func must[T any](answer T, err error) T {
	if err != nil {
		panic(err)
	}
	return answer
}

func main() {
	ctx, url, idToken := context.Background(), os.Args[1], os.Args[2]
	client := must(api.NewClientWithResponses(url))
	answer := must(client.SignInWithResponse(ctx, "idp", api.SignInRequest{IdToken: idToken}))
	signedIn := answer.JSON201
	if signedIn == nil {
		panic(string(answer.Body))
	}
	refreshed := must(client.RefreshWithResponse(ctx, api.RefreshRequest{RefreshToken: *signedIn.RefreshToken}))
	if refreshed.JSON200 == nil {
		panic(string(refreshed.Body))
	}
	bearer := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+refreshed.JSON200.AccessToken)
		return nil
	}
	me := must(client.GetMeWithResponse(ctx, bearer))
	refused := must(client.RefreshWithResponse(ctx, api.RefreshRequest{RefreshToken: "made-up"}))
	fmt.Println(signedIn.Outcome, *me.JSON200.Email, refused.ApplicationproblemJSON401.Error)
}
