// The page of `hinge toy`: questions go to the server that sent it.
import { mount } from "./toy.js";

async function ask(question, body) {
  let response;
  try {
    response = await fetch(question, { method: "POST", body: JSON.stringify(body) });
  } catch {
    throw new Error("the toy has ended: start hinge toy again");
  }
  if (!response.ok) throw new Error(await response.text());
  return response.arrayBuffer();
}

window.hingeToy = await mount(document.body, ask, {
  read: () => location.hash.slice(1),
  write: (text) => history.replaceState(null, "", "#" + text),
  listen: (changed) => window.addEventListener("hashchange", changed),
});
