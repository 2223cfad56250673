import { byId } from './dom.js';

export function say(text: string, kind: 'good' | 'bad' = 'good'): void {
  const status = byId('status');
  status.textContent = text;
  status.className = kind;
}

export async function getJson<T>(path: string): Promise<T> {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return (await response.json()) as T;
}

export async function postJson(path: string, body: unknown): Promise<void> {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(((await response.json()) as { error: string }).error);
}

type Listeners<M> = { readonly [N in keyof M]: (data: M[N]) => void };

export function followStream<M>(listeners: Listeners<M>, reopened: () => void = () => {}): void {
  const stream = new EventSource('stream');
  let wasLost = false;
  stream.addEventListener('open', () => {
    say('live');
    if (wasLost) reopened();
    wasLost = false;
  });
  stream.addEventListener('error', () => {
    say('no connection; trying again', 'bad');
    wasLost = true;
  });
  for (const name of Object.keys(listeners) as Array<keyof M & string>) {
    stream.addEventListener(name, (message) => listeners[name](JSON.parse(message.data) as M[typeof name]));
  }
}
