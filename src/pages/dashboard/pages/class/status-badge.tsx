import { Badge } from '../../parts/stat.jsx';
import { type Status, statusTexts } from './status.js';

const tones: Readonly<Record<Status, 'good' | 'alert' | 'soft'>> = {
  ...{ risk: 'alert', track: 'good', idle: 'soft', few: 'soft' },
};

export const StatusBadge = ({ status }: { readonly status: Status }) => (
  <Badge tone={tones[status]}>{statusTexts[status]}</Badge>
);
