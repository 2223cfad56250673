import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { isIPv4, isIPv6, type Socket } from 'node:net';

/** From the first byte of a request, or the beginning of its connection, to its last byte. */
const REQUEST_TIMEOUT_MS = 5_000;
const CHECK_INTERVAL_MS = 1_000;
/** A connection may wait this long for the next request. */
const KEEP_ALIVE_MS = 1_000;
const CONNECTIONS_MAX = 64;

export interface HttpServerLimits {
  /** One more makes the one go that has been without a request for longest. */
  readonly connections?: number;
}

export function boundedHttpServer(
  handler: RequestListener,
  { connections = CONNECTIONS_MAX }: HttpServerLimits = {},
): Server {
  const server = createServer(
    {
      headersTimeout: REQUEST_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
    },
    handler,
  );
  const idle = new Set<Socket>();
  let open = 0;
  server.on('connection', (socket) => {
    idle.add(socket);
    open++;
    socket.once('close', () => {
      idle.delete(socket);
      open--;
    });
    // A newcomer goes itself where all others are being answered.
    if (open > connections) idle.values().next().value?.destroy();
  });
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket, headers } = request;
    const isBeingAnswered = () => idle.delete(socket);
    // A client that has announced a body and does not send it gets no answer; the server waits.
    const hasBody = headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
    if (hasBody) request.once('end', isBeingAnswered);
    else isBeingAnswered();
    response.once('close', () => {
      if (!socket.destroyed) idle.add(socket);
    });
  });
  return server;
}

/**
 * Whether a request is for this server by its own name: an address, `localhost`, or one of the configured names. Any
 * other name may belong to a web site that points it here, so that its pages could read the answers (DNS rebinding).
 */
export function isOwnName(host: string | undefined, allowed: readonly string[] = []): boolean {
  const name = (host ?? '').replace(/:\d*$/, '').toLowerCase();
  if (name.startsWith('[')) return name.endsWith(']') && isIPv6(name.slice(1, -1));
  return isIPv4(name) || name === 'localhost' || allowed.some((own) => own.toLowerCase() === name);
}

/** Browsers say so (Fetch: `Origin`, `Sec-Fetch-Site`); programs that are no browsers send neither. */
export function isFromOtherSite({ headers }: IncomingMessage): boolean {
  const { origin, host, 'sec-fetch-site': site } = headers;
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true;
  return origin !== undefined && origin.replace(/^https?:\/\//, '') !== host; // Before a proxy it may be https.
}

export function urlOf({ url = '' }: IncomingMessage): URL | undefined {
  const base = 'http://endpoint';
  return URL.canParse(url, base) ? new URL(url, base) : undefined;
}
