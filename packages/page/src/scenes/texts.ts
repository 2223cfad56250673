/** All texts of the page. `{name}` is replaced by a number or a name. */

export const TEXTS = {
  title: { en: 'RDMA networks, simulated in this page', zh: '在本页中仿真 RDMA 网络' },
  scenes: { en: 'Scenes', zh: '场景' },
  language: { en: '中文', zh: 'English' },
  theme: { en: 'Light or dark', zh: '浅色 / 深色' },
  settings: { en: 'Settings', zh: '设置' },
  seed: { en: 'Seed', zh: '随机种子' },
  'seed.hint': { en: 'Another seed gives other random numbers.', zh: '不同的种子产生不同的随机数。' },
  copyLink: { en: 'Copy link', zh: '复制链接' },
  copied: { en: 'Copied', zh: '已复制' },
  reset: { en: 'Reset', zh: '重置' },
  running: { en: 'Simulating {name}: {share} %', zh: '正在仿真 {name}：{share} %' },
  failed: { en: 'The simulation failed: {message}', zh: '仿真失败：{message}' },
  hash: { en: 'trace hash {hash}', zh: '轨迹哈希 {hash}' },
  'hash.hint': {
    en: 'The same seed and settings give the same packets, also in Node.js.',
    zh: '相同的种子和设置产生相同的报文，在 Node.js 中也一样。',
  },
  results: { en: 'Results', zh: '结果' },
  overTime: { en: 'Over time', zh: '随时间变化' },
  packets: { en: 'Packets', zh: '报文' },
  variant: { en: 'Run', zh: '运行' },
  time: { en: 'Virtual time', zh: '虚拟时间' },
  play: { en: 'Play', zh: '播放' },
  pause: { en: 'Pause', zh: '暂停' },
  slower: { en: 'Speed', zh: '速度' },
  perSecond: { en: '{time} of virtual time a second', zh: '每秒 {time} 虚拟时间' },
  back: { en: 'Previous packet', zh: '上一个报文' },
  forward: { en: 'Next packet', zh: '下一个报文' },
  toLoss: { en: 'Next loss', zh: '下一次丢包' },
  sender: { en: 'sender', zh: '发送端' },
  receiver: { en: 'receiver', zh: '接收端' },
  livelock: { en: 'Livelock', zh: '活锁' },
  'livelock.idea': {
    en: 'A lossy link can be fully busy and deliver nothing.',
    zh: '有丢包的链路可能一直满载，却什么也没有送达。',
  },
  'livelock.schemes': { en: 'Recovery schemes', zh: '丢包恢复方案' },
  'livelock.schemes.hint': {
    en: 'What the sender retransmits after a loss.',
    zh: '丢包之后发送端重传什么。',
  },
  'livelock.loss': { en: 'Loss', zh: '丢包率' },
  'livelock.loss.hint': {
    en: 'The share of packets that the switch drops. 1/256 drops every 256th packet.',
    zh: '交换机丢弃的报文比例。1/256 表示每 256 个报文丢弃一个。',
  },
  'livelock.message': { en: 'Message size', zh: '消息大小' },
  'livelock.message.hint': {
    en: 'A message is one RDMA WRITE. It is divided into packets of 1,024 bytes.',
    zh: '一条消息是一次 RDMA WRITE，被分成 1024 字节的报文。',
  },
  'livelock.goodput': { en: 'Goodput: completed messages', zh: '有效吞吐：已完成的消息' },
  'livelock.link': { en: 'Link: all packets of the sender', zh: '链路：发送端的全部报文' },
  'livelock.stuck': { en: 'Livelock: the link is busy, and nothing arrives', zh: '活锁：链路满载，却没有消息送达' },
  'livelock.stuck.text': {
    en: '{scheme} restarts a message at its first packet after each loss. A message has {packets} packets, and the switch drops {loss} of them, so a loss comes before each message is complete.',
    zh: '每次丢包后，{scheme} 都从消息的第一个报文重新开始。一条消息有 {packets} 个报文，交换机丢弃其中的 {loss}，所以每条消息在完成之前都会再次丢包。',
  },
  'livelock.part': { en: 'Part of the traffic is wasted', zh: '一部分流量被浪费' },
  'livelock.part.text': {
    en: '{scheme} completes messages with {share} % of what it sends. The rest are packets that it sends again although they may have arrived.',
    zh: '{scheme} 发送的流量中只有 {share} % 用于完成消息，其余是重传的报文，其中许多其实已经到达。',
  },
  'livelock.good': { en: 'Messages arrive', zh: '消息正常送达' },
  'livelock.good.text': {
    en: 'All schemes shown complete messages with at least {share} % of what they send, because few packets are lost or only those are sent again.',
    zh: '所示方案发送的流量中至少有 {share} % 用于完成消息，因为丢包很少，或者只重传丢失的报文。',
  },
} as const;

export type TextKey = keyof typeof TEXTS;
export const LANGUAGES = ['en', 'zh'] as const;
export type Language = (typeof LANGUAGES)[number];

export function textIn(language: Language, key: TextKey, numbers: Readonly<Record<string, string>> = {}): string {
  return TEXTS[key][language].replace(/\{(\w+)\}/g, (whole, name: string) => numbers[name] ?? whole);
}
