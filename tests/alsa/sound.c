/* The sound itself: what the microphone hears, what the mixer makes of it, what was played. */
#include "device.h"

#include <fcntl.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void forget_source(struct device *device)
{
  if (device->source)
    munmap((void *)device->source, device->source_bytes);
  device->source = NULL;
  device->source_frames = 0;
}

void load_source(struct device *device)
{
  const struct card *card = device->card;
  struct stat status;
  int file;

  forget_source(device);
  if (!*card->source_path)
    return;
  file = open(card->source_path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return;
  if (!fstat(file, &status) && status.st_size > 0) {
    void *bytes = mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, file, 0);

    if (bytes != MAP_FAILED) {
      device->source = bytes;
      device->source_bytes = status.st_size;
      device->source_frames = status.st_size / card->source_channels /
                              (snd_pcm_format_physical_width(card->source_format) / 8);
    }
  }
  close(file);
}

/* A sample as a part of full scale; a double holds every format without loss. */
static double decode(const uint8_t *at, int format)
{
  switch (format) {
  case SND_PCM_FORMAT_S16_LE:
    return (int16_t)(at[0] | at[1] << 8) / 32768.0;
  case SND_PCM_FORMAT_S24_LE:
  case SND_PCM_FORMAT_S24_3LE:
    return (int32_t)((uint32_t)at[0] << 8 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 24) /
           2147483648.0;
  case SND_PCM_FORMAT_S32_LE: {
    int32_t value;

    memcpy(&value, at, sizeof value);
    return value / 2147483648.0;
  }
  default: {
    float value;

    memcpy(&value, at, sizeof value);
    return value;
  }
  }
}

static int64_t whole(double value, double full_scale)
{
  double scaled = rint(value * full_scale);

  if (scaled >= full_scale)
    return (int64_t)full_scale - 1;
  return scaled < -full_scale ? (int64_t)-full_scale : (int64_t)scaled;
}

static void encode(uint8_t *at, int format, double value, int padding)
{
  int64_t number;
  float single;

  switch (format) {
  case SND_PCM_FORMAT_S16_LE:
    number = whole(value, 32768.0);
    memcpy(at, &number, 2);
    return;
  case SND_PCM_FORMAT_S24_LE:
    number = whole(value, 8388608.0);
    memcpy(at, &number, 4);
    if (padding == PADDING_ZERO)
      at[3] = 0;
    else if (padding == PADDING_JUNK)
      at[3] = at[0] ^ 0x5a;
    return;
  case SND_PCM_FORMAT_S24_3LE:
    number = whole(value, 8388608.0);
    memcpy(at, &number, 3);
    return;
  case SND_PCM_FORMAT_S32_LE:
    number = whole(value, 2147483648.0);
    memcpy(at, &number, 4);
    return;
  default:
    single = (float)fmax(-1.0, fmin(1.0, value));
    memcpy(at, &single, 4);
  }
}

static double source_sample(const struct device *device, int64_t frame, int channel)
{
  const struct card *card = device->card;
  int width = snd_pcm_format_physical_width(card->source_format) / 8;

  if (card->source_loops && device->source_frames && frame >= 0)
    frame %= device->source_frames;
  if (frame < 0 || frame >= device->source_frames)
    return 0;
  return decode(device->source + (frame * card->source_channels + channel) * width,
                card->source_format);
}

/* Straight lines between the source's frames when its rate is not ours; exact when it is. */
static double heard(const struct device *device, int64_t position, int channel)
{
  const struct card *card = device->card;
  double at = device->base + position * source_step(device);
  int64_t frame = (int64_t)floor(at);
  double part = at - frame, value;
  int from = channel < card->map_count    ? card->channel_map[channel]
             : card->source_channels == 1 ? 0
                                          : channel;

  if (from < 0 || from >= card->source_channels)
    return 0;
  value = source_sample(device, frame, from);
  if (part > 0)
    value += part * (source_sample(device, frame + 1, from) - value);
  return value;
}

/* What the mixer makes of one channel: a factor, 0 when it is switched off. */
static double mixer_gain(const struct card *card, int channel, int gain_role, int switch_role)
{
  double gain_cdb = 0;
  int i;

  for (i = 0; i < card->control_count; i++) {
    const struct control *control = &card->controls[i];
    int value = control->values[channel < control->channels ? channel : control->channels - 1];

    if (control->role == switch_role && !value)
      return 0;
    if (control->role == gain_role)
      gain_cdb +=
          control->gain_minimum_cdb + (double)control->gain_step_cdb * (value - control->minimum);
  }
  return gain_cdb == 0 ? 1 : pow(10, gain_cdb / 2000);
}

/* Cuts the recording where the sound stopped: what was dropped never sounded. */
void cut_recording(struct device *device)
{
  int64_t unplayed = device->application - device->hardware;
  int frame_bytes = snd_pcm_format_physical_width(device->io.format) / 8 * device->io.channels;

  if (is_capture(device) || unplayed <= 0)
    return;
  device->stream->frames_unplayed += unplayed;
  if (device->speaker >= 0) {
    off_t end = lseek(device->speaker, 0, SEEK_END) - unplayed * frame_bytes;

    if (end >= 0 && ftruncate(device->speaker, end) == 0)
      lseek(device->speaker, end, SEEK_SET);
  }
  device->hardware = device->application; /* once is enough */
}

static uint8_t *sample_at(const snd_pcm_channel_area_t *area, snd_pcm_uframes_t frame)
{
  return (uint8_t *)area->addr + (area->first + area->step * frame) / 8;
}

void capture(struct device *device, const snd_pcm_channel_area_t *areas, snd_pcm_uframes_t offset,
             snd_pcm_uframes_t size)
{
  const snd_pcm_ioplug_t *io = &device->io;
  unsigned channel;
  snd_pcm_uframes_t i;

  for (channel = 0; channel < io->channels; channel++) {
    double gain = mixer_gain(device->card, channel, ROLE_CAPTURE_GAIN, ROLE_CAPTURE_SWITCH);

    for (i = 0; i < size; i++)
      encode(sample_at(&areas[channel], offset + i), io->format,
             gain == 0 ? 0 : gain * heard(device, device->application + i, channel),
             device->stream->s24_padding);
  }
}

int play(struct device *device, const snd_pcm_channel_area_t *areas, snd_pcm_uframes_t offset,
         snd_pcm_uframes_t size)
{
  int width = snd_pcm_format_physical_width(device->io.format) / 8;
  size_t bytes = size * width * device->io.channels;
  uint8_t *frames = malloc(bytes), *at = frames;
  unsigned channel;
  double gains[CHANNELS];
  snd_pcm_uframes_t i;
  ssize_t written;

  if (!frames)
    return -ENOMEM;
  for (channel = 0; channel < device->io.channels; channel++)
    gains[channel] = mixer_gain(device->card, channel, ROLE_PLAYBACK_GAIN, ROLE_PLAYBACK_SWITCH);
  for (i = 0; i < size; i++)
    for (channel = 0; channel < device->io.channels; channel++, at += width) {
      memcpy(at, sample_at(&areas[channel], offset + i), width);
      if (gains[channel] != 1)
        encode(at, device->io.format, gains[channel] * decode(at, device->io.format), PADDING_SIGN);
    }
  written = device->speaker < 0 ? (ssize_t)bytes : write(device->speaker, frames, bytes);
  free(frames);
  return written == (ssize_t)bytes ? 0 : -EIO;
}
