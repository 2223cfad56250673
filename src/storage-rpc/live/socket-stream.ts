import type { Socket } from 'node:net';
import { RoceError } from '../../core/errors.js';
import type { ByteStream } from '../stream/byte-stream.js';

export interface Beginning {
  refusalIn(first: Buffer): Error | undefined;
  silence(cause: Error): Error;
}

export class SocketStream implements ByteStream {
  onData: (bytes: Buffer) => void = () => {};
  onClose: (error: Error) => void = () => {};
  readonly #socket: Socket;
  #why: Error = new RoceError('ERR_ROCE_CONNECT', 'the peer closed the connection');
  #destroyed = false;

  constructor(socket: Socket, beginning?: Beginning) {
    this.#socket = socket;
    socket.setNoDelay(true);
    let awaited = beginning;
    socket.on('data', (bytes: Buffer) => {
      const refusal = awaited?.refusalIn(bytes);
      awaited = undefined;
      if (refusal === undefined) this.onData(bytes);
      else socket.destroy(refusal);
    });
    socket.on('error', (error) => {
      this.#why = error;
    });
    socket.on('close', () => {
      if (!this.#destroyed) this.onClose(awaited?.silence(this.#why) ?? this.#why);
    });
  }

  write(pieces: readonly Uint8Array[], onSent?: () => void): void {
    const socket = this.#socket;
    const last = pieces.findLastIndex(({ length }) => length > 0);
    socket.cork();
    pieces.forEach((piece, i) => {
      if (i === last) socket.write(piece, () => onSent?.());
      else if (piece.length > 0) socket.write(piece);
    });
    socket.uncork();
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  destroy(): void {
    this.#destroyed = true;
    this.#socket.destroy();
  }
}
