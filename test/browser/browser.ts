/** The browser of this system, and a dashboard to look at with it. */

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import puppeteer, { type Browser as Firefox } from 'puppeteer-core';
import { Program } from '../e2e/executable.js';

const MAIN = fileURLToPath(new URL('../../packages/cli/bin/rocev2.js', import.meta.url));
const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** Undefined where there is none; `CHROMIUM` names another. */
export const chromiumPath = process.env['CHROMIUM'] ?? PLACES.find((path) => existsSync(path));

export function launch(): Promise<Browser> {
  // The sandbox of Chromium does not work for root.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({ executablePath: chromiumPath!, args });
}

/** Undefined where there is none; `FIREFOX` names another. */
export const firefoxPath =
  process.env['FIREFOX'] ?? ['/usr/bin/firefox-esr', '/usr/bin/firefox'].find((path) => existsSync(path));

/** Stock Firefox, by WebDriver BiDi. `protocolTimeout` limits the longest evaluation in a page, in milliseconds. */
export function launchFirefox(protocolTimeout: number): Promise<Firefox> {
  return puppeteer.launch({ browser: 'firefox', executablePath: firefoxPath!, protocolTimeout });
}

export class RunningDashboard implements AsyncDisposable {
  readonly url: string;
  readonly #program: Program;

  private constructor(url: string, program: Program) {
    this.url = url;
    this.#program = program;
  }

  static async start(...args: readonly string[]): Promise<RunningDashboard> {
    const program = new Program(MAIN, ['dashboard', '--json', '--bind', '127.58.2.1', ...args]);
    const [line] = await program.writes('stdout', /^\{.*\}$/m);
    return new RunningDashboard((JSON.parse(line) as { url: string }).url, program);
  }

  async document<T>(path: string): Promise<T> {
    return (await (await fetch(this.url + path)).json()) as T;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#program.kill('SIGINT');
    const code = await this.#program.ended();
    if (code !== 0) throw new Error(`the dashboard ended with ${code}: ${this.#program.stderr}`);
  }
}

/** A page of the dashboard, and everything that went wrong in it. */
export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<{ page: Page; troubles: string[] }> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  const troubles: string[] = [];
  page.on('console', (message) => troubles.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => troubles.push(String(error)));
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith('data:')) troubles.push(`asked ${request.url()}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 400) troubles.push(`${response.status()} for ${response.url()}`);
  });
  await page.goto(url);
  return { page, troubles };
}
