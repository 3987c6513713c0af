/* What a device offers, told to alsa-lib. */
#include "device.h"

static int lowest(const struct choice *choice)
{
  int value = choice->values[0], i;

  for (i = 1; i < choice->count; i++)
    value = choice->values[i] < value ? choice->values[i] : value;
  return value;
}

static int highest(const struct choice *choice)
{
  int value = choice->values[0], i;

  for (i = 1; i < choice->count; i++)
    value = choice->values[i] > value ? choice->values[i] : value;
  return value;
}

static int offer(struct device *device, int parameter, const struct choice *choice)
{
  if (choice->is_range)
    return snd_pcm_ioplug_set_param_minmax(&device->io, parameter, choice->values[0],
                                           choice->values[1]);
  return snd_pcm_ioplug_set_param_list(&device->io, parameter, choice->count,
                                       (const unsigned *)choice->values);
}

/* alsa-lib wants sizes in bytes: every size in frames, times every size that a frame may have.
 * A card with exact periods is exact if it has one format and one number of channels. */
static int offer_bytes(struct device *device, int parameter, const struct choice *frames)
{
  const struct choice *formats = &device->stream->formats, *channels = &device->stream->channels;
  unsigned sizes[CHOICES * CHOICES], count = 0;
  int widest = 0, narrowest = 64, format, size, channel;

  for (format = 0; format < formats->count; format++) {
    int width = snd_pcm_format_physical_width(formats->values[format]) / 8;

    widest = width > widest ? width : widest;
    narrowest = width < narrowest ? width : narrowest;
  }
  if (frames->is_range)
    return snd_pcm_ioplug_set_param_minmax(&device->io, parameter,
                                           frames->values[0] * narrowest * lowest(channels),
                                           frames->values[1] * widest * highest(channels));
  for (format = 0; format < formats->count; format++)
    for (channel = lowest(channels); channel <= highest(channels); channel++)
      for (size = 0; size < frames->count && count < CHOICES * CHOICES; size++)
        sizes[count++] = snd_pcm_format_physical_width(formats->values[format]) / 8 * channel *
                         frames->values[size];
  return snd_pcm_ioplug_set_param_list(&device->io, parameter, count, sizes);
}

int offer_everything(struct device *device)
{
  const struct stream *stream = device->stream;
  static const unsigned access[] = {SND_PCM_ACCESS_RW_INTERLEAVED, SND_PCM_ACCESS_MMAP_INTERLEAVED};
  int error;

  (void)((error = snd_pcm_ioplug_set_param_list(&device->io, SND_PCM_IOPLUG_HW_ACCESS, 2, access)) <
             0 ||
         (error = offer(device, SND_PCM_IOPLUG_HW_FORMAT, &stream->formats)) < 0 ||
         (error = offer(device, SND_PCM_IOPLUG_HW_CHANNELS, &stream->channels)) < 0 ||
         (error = offer(device, SND_PCM_IOPLUG_HW_RATE, &stream->rates)) < 0 ||
         (error = offer(device, SND_PCM_IOPLUG_HW_PERIODS, &stream->periods)) < 0 ||
         (error = offer_bytes(device, SND_PCM_IOPLUG_HW_PERIOD_BYTES, &stream->period_frames)) <
             0 ||
         (error = offer_bytes(device, SND_PCM_IOPLUG_HW_BUFFER_BYTES, &stream->buffer_frames)) < 0);
  return error;
}
