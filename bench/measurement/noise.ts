/** Measures the echo several times, to show the noise of the machine. */

import { usualTraffic } from '../load/traffic.js';
import type { Noise } from '../results/results.js';
import { type Bench, measureInTurns } from './bench.js';
import { createPeerContestant } from './scenario.js';

const pace = { rounds: 1, seconds: 1 };

export function watchNoise(bench: Bench, key: string) {
  const told: Record<keyof Noise, number[]> = { cpu: [], perSecond: [] };
  const labelledBench = { ...bench, progress: (text: string) => bench.progress(`noise: ${text}`) };
  const look = async (): Promise<void> => {
    const contestant = createPeerContestant(await bench.peer('echo'), key, usualTraffic);
    const rounds = await measureInTurns(labelledBench, [contestant], pace);
    told.cpu.push(...rounds.cpu(contestant.name));
    told.perSecond.push(...rounds.perSecond(contestant.name));
  };
  return { look, told };
}
