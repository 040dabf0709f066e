// A program of a backend, on a client that openapi-generator made.

import java.util.UUID;
import java.util.stream.Collectors;
import vestibule.ApiClient;
import vestibule.ApiException;
import vestibule.api.AdministrationApi;
import vestibule.model.ChangeRequest;
import vestibule.model.NewUserRequest;
import vestibule.model.Problem;
import vestibule.model.UserRecord;

public final class Backend {
    public static void main(String[] arguments) throws Exception {
        var client = new ApiClient();
        client.updateBaseUri(arguments[0]);
        client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + arguments[1]));
        var users = new AdministrationApi(client);

        var grace = users.createUser(new NewUserRequest().email("grace@example.com").name("Grace Hopper"));
        var search = users.findUsers("grace", null, null, null, null, null, null, null, null, null, null, null);
        var found = search.getUsers().stream().map(UserRecord::getEmail).collect(Collectors.joining());
        var tried = users.disableUser(grace.getId(), new ChangeRequest().reason("a test").dryRun(true));
        String refused = null;
        try {
            users.getUser(UUID.randomUUID());
        } catch (ApiException error) {
            refused = client.getObjectMapper().readValue(error.getResponseBody(), Problem.class).getError().toString();
        }
        System.out.println(found + " " + tried.getApplied() + " " + refused);
    }
}
