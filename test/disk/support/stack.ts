/** A disk of ours with everything in front of it, as processes, and a folder to work in. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { Program } from '../../e2e/executable.js';
import { runScript, type ScriptResult } from './script.js';
import { describeWithTools, TOOL_PATH } from './tools.js';

const SERVER = '127.54.1.1';
const GATEWAY = '127.54.1.2';

/** A cluster is seven processes, which compile their code at the same time. */
const START_LIMIT_MS = 240_000;

/** Starts `rocev2 disk ARGS`; resolves when it serves. */
export type Launch = (...args: string[]) => Promise<void>;

/** Starts the processes of a stack; the last of them listens at the address. */
export type StackPlan = (folder: string, listen: string, launch: Launch) => Promise<void>;

/** `describe` of a suite over one stack. */
export function describeStack(title: string, plan: StackPlan, body: (stack: () => Stack) => void): void {
  describeWithTools(title, () => {
    let stack: Stack;
    beforeAll(async () => {
      stack = await Stack.start(plan);
    }, START_LIMIT_MS);
    afterAll(() => stack?.stop(), START_LIMIT_MS);
    body(() => stack);
  });
}

export class Stack {
  readonly folder: string;
  readonly #plan: StackPlan;
  #programs: Program[] = [];
  /** Of each program. */
  #args: string[][] = [];

  private constructor(folder: string, plan: StackPlan) {
    this.folder = folder;
    this.#plan = plan;
  }

  static async start(plan: StackPlan): Promise<Stack> {
    const stack = new Stack(await mkdtemp(join(tmpdir(), 'rocev2-disk-')), plan);
    await stack.#start();
    return stack;
  }

  get uri(): string {
    return `nbd+unix:///?socket=${this.folder}/socket`;
  }

  /** The program that listens at the socket. */
  get gateway(): Program {
    return this.#programs.at(-1)!;
  }

  /** Kills the process that was started first, and starts it anew. */
  async killFirst(): Promise<void> {
    this.#programs[0].kill('SIGKILL');
    await this.#programs[0].ended();
    this.#programs[0] = await launch(this.#args[0]);
  }

  /** Ends all processes as Ctrl-C does; what each printed at its end. */
  async documents(): Promise<Array<Record<string, unknown>>> {
    const programs = [...this.#programs];
    await this.#end();
    return programs.map(({ stdout }) => JSON.parse(stdout));
  }

  /** Ends all processes as Ctrl-C does, and starts them anew. */
  async restart(): Promise<void> {
    await this.#end();
    await this.#start();
  }

  async stop(): Promise<void> {
    await this.#end();
    await rm(this.folder, { recursive: true });
  }

  /** Runs a script of bash that stops at its first failure, with the URI of the disk in `U`; what it leaves running is ended with it. */
  async run(script: string, limitMs?: number): Promise<ScriptResult> {
    const env = { ...process.env, PATH: TOOL_PATH, U: this.uri, SOCKET: `${this.folder}/socket` };
    return runScript(script, { cwd: this.folder, env, ...(limitMs !== undefined && { limitMs }) });
  }

  /** Runs a script that has to succeed; what it wrote. */
  async succeeds(script: string, limitMs?: number): Promise<string> {
    const { exitCode, output } = await this.run(script, limitMs);
    expect(exitCode, `${script}\n${output}\n${this.#programs.map(({ stderr }) => stderr).join('\n')}`).toBe(0);
    return output;
  }

  async #start(): Promise<void> {
    try {
      await this.#plan(this.folder, `unix:${this.folder}/socket`, async (...args) => {
        this.#programs.push(await launch(args));
        this.#args.push(args);
      });
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** Clients before servers. */
  async #end(): Promise<void> {
    for (const program of this.#programs.toReversed()) {
      program.kill('SIGINT');
      await program.ended();
    }
    this.#programs = [];
    this.#args = [];
  }
}

async function launch(args: readonly string[]): Promise<Program> {
  const program = Program.rocev2('disk', ...args);
  try {
    await program.writes('stderr', /Ctrl-C ends it\n/);
    return program;
  } catch (error) {
    program.kill('SIGKILL');
    throw error;
  }
}

/** `rocev2 disk nbd` by itself. */
export function gatewayAlone(...backend: string[]): StackPlan {
  return (folder, listen, launch) =>
    launch('nbd', '--listen', listen, '--backend', ...backend.map((arg) => arg.replace('FOLDER', folder)));
}

/** A storage server with a disk in a file, and a gateway that reaches it over RDMA, with these rules of loss on both. */
export function gatewayToServer(sizeBytes: number, loss: string | undefined, ...gatewayArgs: string[]): StackPlan {
  return async (folder, listen, launch) => {
    const common = loss === undefined ? ['--json'] : ['--loss', loss, '--json'];
    await launch('serve', '--backend', `file:${folder}/disk`, '--size', `${sizeBytes}`, '--bind', SERVER, ...common);
    await launch('nbd', '--listen', listen, '--connect', SERVER, '--bind', GATEWAY, ...gatewayArgs, ...common);
  };
}
