/** Style properties by meaning. A packet has the same colour in the player, in the ladder and in charts. */
export const COLORS = {
  data: '--hue0',
  link: '--hue1',
  ack: '--hue2',
  nak: '--hue3',
  repeated: '--hue4',
  cnp: '--hue5',
  request: '--hue6',
  queue: '--hue7',
  pause: '--hue3',
  lost: '--bad',
} as const;

/** Of lines that show queue pairs or flows side by side; those of packets come last. */
export const QUEUE_PAIR_COLORS: readonly string[] = [6, 7, 1, 5, 3, 4, 2, 0].map((hue) => `--hue${hue}`);
