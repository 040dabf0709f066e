// Takes the place of Google's script: its button fetches a token of the development provider.
window.google = {
  accounts: {
    id: {
      initialize: (settings) => Object.assign(google, { settings }),
      renderButton(place) {
        const button = document.createElement("button");
        button.textContent = "Sign in with Google";
        button.onclick = async () => {
          const { nonce, callback } = google.settings;
          callback({ credential: await (await fetch(`/token/${nonce}`)).text() });
        };
        place.append(button);
      },
    },
  },
};
