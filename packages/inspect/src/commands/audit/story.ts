/** Prints the packets of a finding's two addresses before and after it, as `rocev2 decode` does. */

import type { Output } from '@rocev2/command';
import { CaptureStream, decodeRoce, separated, udpOf } from 'rocev2/internal/capture';
import type { Finding } from '../../audit/ledger.js';
import { PacketLines } from '../decode-lines.js';
import type { ProtectedCapture } from '../protected-capture.js';

const STORIES_MAX = 5;
const PACKETS_BEFORE = 4;
const PACKETS_BEHIND = 2;
/** Segmentation offload makes one packet of the file of up to 64. */
const STORY_LINES_MAX = 32;

interface Story {
  readonly finding: Finding;
  readonly addresses: ReadonlySet<string>;
  readonly lines: string[];
  behind: number;
}

/** Where the packets of findings are. */
export interface StoryCapture {
  readonly path: string;
  readonly udpPorts: readonly number[];
  readonly keys?: ProtectedCapture | undefined;
}

export async function printStories(
  output: Output,
  { path, udpPorts, keys }: StoryCapture,
  findings: readonly Finding[],
): Promise<void> {
  const stories = findings.slice(0, STORIES_MAX).map(
    (finding): Story => ({
      finding,
      addresses: new Set(finding.flow.split(/ -> | QP /).slice(0, 2)),
      lines: [],
      behind: PACKETS_BEHIND,
    }),
  );
  const ports = new Set(udpPorts);
  const stream = await CaptureStream.open(path);
  const format = new PacketLines(output.colors);
  let number = 0;
  let firstNs: bigint | undefined;
  for await (const chunk of stream.chunks()) {
    for (const captured of chunk) {
      number++;
      firstNs ??= captured.timestampNs;
      const place = { number, timeNs: Number(captured.timestampNs - firstNs), interfaceId: captured.interfaceId };
      for (const packet of keys?.take(captured) ?? separated(captured, ports)) {
        const datagram = udpOf(packet);
        if (datagram === undefined) continue;
        const concerned = stories.filter(
          ({ addresses }) => addresses.has(datagram.source.text) && addresses.has(datagram.destination.text),
        );
        if (concerned.length === 0) continue;
        const line = format.next(decodeRoce(datagram, place, true), []);
        for (const story of concerned) tell(story, line.split('\n').at(-1)!, number);
      }
    }
  }
  for (const { finding, lines } of stories) {
    output.line();
    output.line(`${finding.verdict}, ${finding.flow}: ${finding.text}`);
    for (const line of lines) output.line(line);
  }
}

function tell(story: Story, line: string, number: number): void {
  const { packets } = story.finding;
  const [first, last] = [Math.min(...packets), Math.max(...packets)];
  if (packets.includes(number)) {
    if (story.lines.length < STORY_LINES_MAX) story.lines.push(`> ${line}`);
  } else if (number < first) {
    story.lines.push(`  ${line}`);
    if (story.lines.length > PACKETS_BEFORE) story.lines.shift();
  } else if (number > last && story.behind-- > 0) story.lines.push(`  ${line}`);
}
