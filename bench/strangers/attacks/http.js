// @ts-check
/** What a stranger does to /metrics. */

import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** @typedef {import('../attacks.js').Attack} Attack */

/** The status line that answers a request. @param {string} at @param {string} text @returns {Promise<string>} */
function ask(at, text) {
  const [host, port] = at.split(':');
  return new Promise((resolve) => {
    const socket = connect(Number(port), host, () => socket.write(text));
    socket.setTimeout(2000, () => socket.destroy());
    socket.once('data', (data) => {
      resolve(String(data).slice(9, 12));
      socket.destroy();
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve('none'));
  });
}

/** @type {Attack[]} */
export const HTTP_ATTACKS = [
  {
    name: 'http-idle',
    title: '40 idle connections to --estats-http, a malformed URL, the Host of another site',
    from: 'anywhere; a web page',
    http: true,
    async run({ http, going }) {
      const at = /** @type {string} */ (http);
      const [host, port] = at.split(':');
      const malformed = await ask(at, `GET //[ HTTP/1.1\r\nHost: ${at}\r\n\r\n`);
      const rebound = await ask(at, 'GET /estats.json HTTP/1.1\r\nHost: evil.example\r\n\r\n');
      const sockets = Array.from({ length: 40 }, () => connect(Number(port), host).on('error', () => {}));
      while (going()) await delay(50);
      for (const socket of sockets) socket.destroy();
      return { malformed, rebound };
    },
    achieved: ({ seen, after }) => {
      const { attempts, times } = after.comers.http;
      return {
        text: `${times.length} of ${attempts} scrapes; malformed URL: ${seen.malformed}; foreign Host: ${seen.rebound}`,
        won: times.length < attempts * 0.99 || seen.malformed === '500' || seen.rebound === '200',
      };
    },
  },
];
