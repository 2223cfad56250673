import { CommandFailure, EXIT_INTERRUPTED } from '@rocev2/command';
import type { ControlChannel } from 'rocev2/internal/cm';

const WAITING_MAX = 16;

export class WaitingClients {
  readonly #interrupted: AbortSignal;
  readonly #channels: ControlChannel[] = [];
  #wake = () => {};

  constructor(interrupted: AbortSignal) {
    this.#interrupted = interrupted;
    interrupted.addEventListener('abort', () => this.#wake(), { once: true });
  }

  add(channel: ControlChannel): void {
    if (this.#channels.length >= WAITING_MAX) {
      channel.refuse('the server is busy with other clients', { busy: true });
      return;
    }
    this.#channels.push(channel);
    this.#wake();
  }

  async next(): Promise<ControlChannel> {
    for (;;) {
      if (this.#interrupted.aborted) throw new CommandFailure(EXIT_INTERRUPTED);
      const channel = this.#channels.shift();
      if (channel !== undefined) return channel;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  close(): void {
    for (const channel of this.#channels.splice(0)) channel.refuse('the server already has a client', { busy: true });
  }
}
