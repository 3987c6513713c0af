/* The mixer of a test card: an alsa-lib external control plugin.
 *
 * Controls, ranges and what they say of themselves come from the card's state; each write is
 * counted, and who wrote what is kept.
 */
#include "card_state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <alsa/asoundlib.h>
#include <alsa/control_external.h>

struct mixer {
  snd_ctl_ext_t ext;
  struct card *card;
  int64_t plugged;
  char state_path[600];
  int64_t seen[CONTROLS]; /* the revision that the application was told of */
};

static int is_gone(const snd_ctl_ext_t *ext)
{
  const struct mixer *mixer = ext->private_data;

  return mixer->card->index < 0 || mixer->card->plugged != mixer->plugged;
}

static struct control *control_of(snd_ctl_ext_t *ext, snd_ctl_ext_key_t key)
{
  struct mixer *mixer = ext->private_data;

  return &mixer->card->controls[key];
}

static void name_it(const struct control *control, snd_ctl_elem_id_t *id)
{
  snd_ctl_elem_id_set_interface(id, SND_CTL_ELEM_IFACE_MIXER);
  snd_ctl_elem_id_set_name(id, control->name);
  snd_ctl_elem_id_set_index(id, control->index);
}

static void on_close(snd_ctl_ext_t *ext)
{
  struct mixer *mixer = ext->private_data;

  close(ext->poll_fd);
  card_close(mixer->card);
  free(mixer);
}

static int on_count(snd_ctl_ext_t *ext)
{
  struct mixer *mixer = ext->private_data;

  return is_gone(ext) ? -ENODEV : mixer->card->control_count;
}

static int on_list(snd_ctl_ext_t *ext, unsigned offset, snd_ctl_elem_id_t *id)
{
  struct mixer *mixer = ext->private_data;

  if (is_gone(ext))
    return -ENODEV;
  if (offset >= (unsigned)mixer->card->control_count)
    return -ENOENT;
  name_it(control_of(ext, offset), id);
  return 0;
}

static snd_ctl_ext_key_t on_find(snd_ctl_ext_t *ext, const snd_ctl_elem_id_t *id)
{
  struct mixer *mixer = ext->private_data;
  unsigned number = snd_ctl_elem_id_get_numid(id);
  int i;

  if (number > 0 && number <= (unsigned)mixer->card->control_count)
    return number - 1;
  for (i = 0; i < mixer->card->control_count; i++) {
    const struct control *control = control_of(ext, i);

    if (!strcmp(control->name, snd_ctl_elem_id_get_name(id)) &&
        control->index == (int)snd_ctl_elem_id_get_index(id))
      return i;
  }
  return SND_CTL_EXT_KEY_NOT_FOUND;
}

static int on_attribute(snd_ctl_ext_t *ext, snd_ctl_ext_key_t key, int *type, unsigned *access,
                        unsigned *count)
{
  const struct control *control = control_of(ext, key);

  if (is_gone(ext))
    return -ENODEV;
  *type = control->type;
  *count = control->channels;
  *access = SND_CTL_EXT_ACCESS_READWRITE;
  if (control->tlv_count)
    *access |= SND_CTL_EXT_ACCESS_TLV_READ | SND_CTL_EXT_ACCESS_TLV_CALLBACK;
  return 0;
}

static int on_range(snd_ctl_ext_t *ext, snd_ctl_ext_key_t key, long *minimum, long *maximum,
                    long *step)
{
  const struct control *control = control_of(ext, key);

  *minimum = control->minimum;
  *maximum = control->maximum;
  *step = control->step;
  return 0;
}

static int on_tlv(snd_ctl_ext_t *ext, snd_ctl_ext_key_t key, int operation, unsigned number,
                  unsigned *tlv, unsigned size)
{
  const struct control *control = control_of(ext, key);
  unsigned bytes = control->tlv_count * sizeof *tlv;

  (void)number;
  if (is_gone(ext))
    return -ENODEV;
  if (operation != 0)
    return -ENXIO;
  if (size < bytes)
    return -ENOMEM;
  memcpy(tlv, control->tlv, bytes);
  return 0;
}

static int on_items(snd_ctl_ext_t *ext, snd_ctl_ext_key_t key, unsigned *items)
{
  *items = control_of(ext, key)->item_count;
  return 0;
}

static int on_item_name(snd_ctl_ext_t *ext, snd_ctl_ext_key_t key, unsigned item, char *name,
                        size_t size)
{
  const struct control *control = control_of(ext, key);

  if (item >= (unsigned)control->item_count)
    return -EINVAL;
  snprintf(name, size, "%s", control->items[item]);
  return 0;
}

static int on_read(snd_ctl_ext_t *ext, snd_ctl_ext_key_t key, long *values)
{
  const struct control *control = control_of(ext, key);
  int i;

  if (is_gone(ext))
    return -ENODEV;
  for (i = 0; i < control->channels; i++)
    values[i] = control->values[i];
  return 0;
}

/* Wakes every other mixer handle of the card; the PCM plugin watches for another kind of event. */
static void wake_others(const struct mixer *mixer)
{
  int file = open(mixer->state_path, O_RDWR | O_CLOEXEC);

  if (file >= 0)
    close(file);
}

static void keep_record(struct mixer *mixer, snd_ctl_ext_key_t key, const long *values)
{
  struct control *control = &mixer->card->controls[key];
  struct write *record = &mixer->card->writes[mixer->card->write_count % WRITES];
  int i;

  record->when_ns = card_now_ns();
  record->thread = syscall(SYS_gettid);
  record->control = key;
  for (i = 0; i < control->channels; i++)
    record->values[i] = values[i];
  control->writes++;
  mixer->card->write_count++;
}

static int on_write(snd_ctl_ext_t *ext, snd_ctl_ext_key_t key, long *values)
{
  struct mixer *mixer = ext->private_data;
  struct control *control = control_of(ext, key);
  int i, changed = 0;

  if (is_gone(ext))
    return -ENODEV;
  keep_record(mixer, key, values);
  for (i = 0; i < control->channels; i++)
    if (values[i] < control->minimum || values[i] > control->maximum)
      return -EINVAL;
  for (i = 0; i < control->channels; i++) {
    changed |= control->values[i] != values[i];
    control->values[i] = values[i];
  }
  if (!changed)
    return 0;
  control->revision++;
  wake_others(mixer);
  return 0; /* as the kernel: pyalsaaudio's setenum takes anything else for an error */
}

static int on_read_item(snd_ctl_ext_t *ext, snd_ctl_ext_key_t key, unsigned *items)
{
  const struct control *control = control_of(ext, key);
  int i;

  if (is_gone(ext))
    return -ENODEV;
  for (i = 0; i < control->channels; i++)
    items[i] = control->values[i];
  return 0;
}

static int on_write_item(snd_ctl_ext_t *ext, snd_ctl_ext_key_t key, unsigned *items)
{
  long values[CONTROL_CHANNELS];
  int i;

  for (i = 0; i < control_of(ext, key)->channels; i++)
    values[i] = items[i];
  return on_write(ext, key, values);
}

static int on_event(snd_ctl_ext_t *ext, snd_ctl_elem_id_t *id, unsigned *mask)
{
  struct mixer *mixer = ext->private_data;
  char told[512];
  int i;

  while (read(ext->poll_fd, told, sizeof told) > 0)
    ;
  if (is_gone(ext))
    return -ENODEV;
  for (i = 0; i < mixer->card->control_count; i++)
    if (mixer->seen[i] != mixer->card->controls[i].revision) {
      mixer->seen[i] = mixer->card->controls[i].revision;
      name_it(&mixer->card->controls[i], id);
      snd_ctl_elem_id_set_numid(id, i + 1);
      *mask = SND_CTL_EVENT_MASK_VALUE;
      return 1;
    }
  return -EAGAIN;
}

static int on_poll_events(snd_ctl_ext_t *ext, struct pollfd *descriptors, unsigned count,
                          unsigned short *events)
{
  if (count != 1)
    return -EINVAL;
  *events = is_gone(ext) ? POLLERR | POLLNVAL : descriptors->revents;
  return 0;
}

static const snd_ctl_ext_callback_t callbacks = {
    .close = on_close,
    .elem_count = on_count,
    .elem_list = on_list,
    .find_elem = on_find,
    .get_attribute = on_attribute,
    .get_integer_info = on_range,
    .get_enumerated_info = on_items,
    .get_enumerated_name = on_item_name,
    .read_integer = on_read,
    .read_enumerated = on_read_item,
    .write_integer = on_write,
    .write_enumerated = on_write_item,
    .read_event = on_event,
    .poll_revents = on_poll_events,
};

static int open_mixer(snd_ctl_t **handle, const char *name, int mode, const char *root,
                      const char *wanted)
{
  char folder[512];
  int error, i;
  struct card *card = card_open(root, wanted, folder, sizeof folder, &error);
  struct mixer *mixer;

  if (!card)
    return error;
  mixer = calloc(1, sizeof *mixer);
  if (!mixer) {
    card_close(card);
    return -ENOMEM;
  }
  mixer->card = card;
  mixer->plugged = card->plugged;
  for (i = 0; i < card->control_count; i++)
    mixer->seen[i] = card->controls[i].revision;
  snprintf(mixer->state_path, sizeof mixer->state_path, "%s/state", folder);
  mixer->ext.version = SND_CTL_EXT_VERSION;
  mixer->ext.card_idx = card->index;
  snprintf(mixer->ext.id, sizeof mixer->ext.id, "%s", card->id);
  snprintf(mixer->ext.driver, sizeof mixer->ext.driver, "%s", card->driver);
  snprintf(mixer->ext.name, sizeof mixer->ext.name, "%s", card->name);
  snprintf(mixer->ext.longname, sizeof mixer->ext.longname, "%s", card->longname);
  snprintf(mixer->ext.mixername, sizeof mixer->ext.mixername, "%s", card->name);
  mixer->ext.poll_fd = card_watch(folder, IN_ATTRIB | IN_CLOSE_WRITE);
  mixer->ext.callback = &callbacks;
  mixer->ext.private_data = mixer;
  mixer->ext.tlv.c = on_tlv;
  error = mixer->ext.poll_fd < 0 ? -EIO : snd_ctl_ext_create(&mixer->ext, name, mode);
  if (error < 0) {
    on_close(&mixer->ext);
    return error;
  }
  *handle = mixer->ext.handle;
  return 0;
}

SND_CTL_PLUGIN_DEFINE_FUNC(oyez_card)
{
  snd_config_iterator_t i, next;
  const char *card_root = NULL, *wanted = NULL;

  (void)root;
  snd_config_for_each(i, next, conf)
  {
    snd_config_t *entry = snd_config_iterator_entry(i);
    const char *id;

    if (snd_config_get_id(entry, &id) < 0)
      continue;
    if (!strcmp(id, "root"))
      snd_config_get_string(entry, &card_root);
    else if (!strcmp(id, "card"))
      snd_config_get_string(entry, &wanted);
  }
  if (!card_root || !wanted) {
    SNDERR("oyez_card: root and card are needed");
    return -EINVAL;
  }
  return open_mixer(handlep, name, mode, card_root, wanted);
}

SND_CTL_PLUGIN_SYMBOL(oyez_card);
