// How messages reach Python: over HTTP from the page of the server, through the kernel from a notebook.

// The secret of the server, kept by the browser for this very origin: a shared address, which holds none, opens too.
const KEY = "ciplearn-secret";

function remembered() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** Remember a secret, and take it out of the address, which people copy and send. */
function remember(secret) {
  try {
    localStorage.setItem(KEY, secret);
  } catch {
    return;
  }
  history.replaceState(null, "", `${location.pathname}${location.hash}`);
}

const post = (path, secret, { headers, ...options }) =>
  fetch(path, { method: "POST", ...options, headers: { ...headers, "x-token": secret } });

const JSON_BODY = { "content-type": "application/json" };

/** The page's own server, by the secret of the address or the one remembered; null where neither opens. */
export async function httpTransport() {
  const given = new URLSearchParams(location.search).get("token");
  for (const secret of [given, remembered()]) {
    if (!secret) continue;
    const hello = await post("message", secret, { body: JSON.stringify({ do: "hello" }), headers: JSON_BODY });
    if (!hello.ok) continue;
    remember(secret);
    return transport(secret);
  }
  return null;
}

function transport(first) {
  // Another page may have learnt the secret of a server that was started anew.
  const secret = () => remembered() ?? first;
  const asked = async (path, options) => {
    let response;
    try {
      response = await post(path, secret(), options);
    } catch {
      return { error: "The server does not answer. Your drawing stays on this page.", offline: true };
    }
    try {
      const answer = await response.json();
      // Another server than the one this page came from, or the same one started again.
      return response.status === 403 ? { ...answer, offline: true, refused: true } : answer;
    } catch {
      return { error: `The server answered with ${response.status}; look at the terminal it runs in.` };
    }
  };
  return {
    ask: (message) => asked("message", { body: JSON.stringify(message), headers: JSON_BODY }),
    sendTable: (file) => asked(`table?name=${encodeURIComponent(file.name)}`, { body: file }),
    listen(told, connection) {
      let source;
      let again;
      const connect = () => {
        source = new EventSource(`events?token=${encodeURIComponent(secret())}`);
        source.onopen = () => connection(true);
        source.onmessage = ({ data }) => told(JSON.parse(data));
        source.onerror = () => {
          connection(false);
          // Refused for good by a server with another secret: the browser itself tries no more.
          if (source.readyState === EventSource.CLOSED) again = setTimeout(connect, 2000);
        };
      };
      connect();
      return () => {
        clearTimeout(again);
        source.close();
      };
    },
  };
}

/** A notebook's kernel, by anywidget. */
export function widgetTransport(model) {
  const waiting = new Map();
  // A widget that is shown twice hears the answers to both.
  const own = Math.random().toString(36).slice(2);
  let count = 0;
  let told = () => {};
  const received = (content) => {
    if ("id" in content) {
      waiting.get(content.id)?.(content.answer);
      waiting.delete(content.id);
    } else told(content);
  };
  model.on("msg:custom", received);
  const ask = (message, buffers = []) =>
    new Promise((resolve) => {
      const id = `${own}-${(count += 1)}`;
      waiting.set(id, resolve);
      model.send({ id, message }, undefined, buffers);
    });
  return {
    ask: (message) => ask(message),
    sendTable: async (file) => ask({ do: "table", name: file.name }, [await file.arrayBuffer()]),
    listen(listener, connection) {
      told = listener;
      connection(true);
      return () => model.off("msg:custom", received);
    },
  };
}
