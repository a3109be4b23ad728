/* SPDX-License-Identifier: MIT */
/* harness_files.c - see harness_files.h. */
#include "harness_files.h"

#include "io/nifti_read.h"
#include "io/table_read.h"

#include <glib.h>
#include <string.h>

struct product {
	fxi_product base;
	struct harness_files *files;
	harness_product keeps;
};

void harness_product_clear(harness_product *p)
{
	for (int64_t i = 0; i < p->n_images; i++)
		fx_drop(p->images[i]);
	g_free(p->images);
	for (int64_t i = 0; i < p->n_volumes; i++) {
		fx_array_unref(p->volumes[i].data);
		g_free(p->volumes[i].description);
		g_free(p->volumes[i].comment);
	}
	g_free(p->volumes);
	for (int64_t i = 0; i < p->n_tracts; i++)
		fx_drop(p->tracts[i]);
	g_free(p->tracts);
	for (int64_t i = 0; i < p->n_scan; i++)
		fx_drop(p->scan[i]);
	g_free(p->scan);
	g_free(p->text);
	g_free((void *)(uintptr_t)p->options.header_xml);
	g_free((void *)(uintptr_t)p->options.tracts);
	g_free(p->name);
}

static int add_image(fxi_product *self, const fx_image *image, fx_error *err)
{
	struct product *p = (struct product *)self;
	fx_msg *copy;
	fx_image *to;

	if (!image->data)
		return fx_error_set(err, FX_EINVAL, "%s: an image without data", p->keeps.name);
	copy = fx_msg_new(FX_IMAGE);
	if (!copy)
		return fx_error_set(err, FX_ENOMEM, "%s: no memory", p->keeps.name);
	to = fx_msg_image(copy);
	to->head = image->head;
	to->data = fx_array_ref(image->data);
	for (int64_t i = 0; i < image->n_meta; i++)
		fx_image_set_meta(to, image->meta[i].name, image->meta[i].value);
	p->keeps.images = g_renew(fx_msg *, p->keeps.images, p->keeps.n_images + 1);
	p->keeps.images[p->keeps.n_images++] = copy;
	return FX_OK;
}

static int add_volume(fxi_product *self, const fx_volume *volume, fx_error *err)
{
	struct product *p = (struct product *)self;

	if (!volume->data || !volume->lattice)
		return fx_error_set(err, FX_EINVAL, "%s: a volume without data or lattice", p->keeps.name);
	p->keeps.volumes = g_renew(harness_volume, p->keeps.volumes, p->keeps.n_volumes + 1);
	p->keeps.volumes[p->keeps.n_volumes++] = (harness_volume){
		.lattice = *volume->lattice, .data = fx_array_ref((fx_array *)(uintptr_t)volume->data),
		.rgb = volume->rgb, .symmetric = volume->symmetric, .vector = volume->vector,
		.description = g_strdup(volume->description), .comment = g_strdup(volume->comment),
	};
	return FX_OK;
}

static int add_tracts(fxi_product *self, const fx_tracts *tracts, fx_error *err)
{
	struct product *p = (struct product *)self;
	fx_msg *copy = fx_msg_new(FX_TRACTS);
	fx_tracts *to;

	if (!copy)
		return fx_error_set(err, FX_ENOMEM, "%s: no memory", p->keeps.name);
	to = fx_msg_tracts(copy);
	*to = *tracts;
	to->info = fx_tracts_info_ref(tracts->info);
	to->offsets = fx_array_ref(tracts->offsets);
	to->points = fx_array_ref(tracts->points);
	to->riemann = fx_array_ref(tracts->riemann);
	to->values = fx_array_ref(tracts->values);
	to->seeds = fx_array_ref(tracts->seeds);
	p->keeps.tracts = g_renew(fx_msg *, p->keeps.tracts, p->keeps.n_tracts + 1);
	p->keeps.tracts[p->keeps.n_tracts++] = copy;
	return FX_OK;
}

static int add_text(fxi_product *self, const char *text, fx_error *err)
{
	struct product *p = (struct product *)self;
	char *both = g_strconcat(p->keeps.text ? p->keeps.text : "", text, NULL);

	(void)err;
	g_free(p->keeps.text);
	p->keeps.text = both;
	return FX_OK;
}

static int add_scan(fxi_product *self, fx_msg *msg, fx_error *err)
{
	struct product *p = (struct product *)self;

	if (!(fx_msg_kind(msg) & ((unsigned)FX_ACQUISITION | FX_WAVEFORM)))
		return fx_error_set(err, FX_EINVAL, "%s: neither a readout nor a waveform", p->keeps.name);
	p->keeps.scan = g_renew(fx_msg *, p->keeps.scan, p->keeps.n_scan + 1);
	p->keeps.scan[p->keeps.n_scan++] = fx_msg_ref(msg);
	return FX_OK;
}

static int commit(fxi_product *self, fx_error *err)
{
	struct product *p = (struct product *)self;
	harness *h = p->files->h;

	(void)err;
	p->keeps.options.name = p->keeps.name;
	pthread_mutex_lock(p->files->lock);
	h->products = g_renew(harness_product, h->products, h->n_products + 1);
	h->products[h->n_products++] = p->keeps;
	pthread_mutex_unlock(p->files->lock);
	g_free(p);
	return FX_OK;
}

static void abandon(fxi_product *self)
{
	struct product *p = (struct product *)self;

	pthread_mutex_lock(p->files->lock);
	p->files->h->n_abandoned++;
	pthread_mutex_unlock(p->files->lock);
	harness_product_clear(&p->keeps);
	g_free(p);
}

/* What each format takes, as in io/files.c. */
static fxi_product product_of(const fx_sink_options *o)
{
	fxi_product base = {.commit = commit, .abandon = abandon};

	switch (o->format) {
	case FX_FORMAT_VOLUME:
		base.add_volume = add_volume;
		break;
	case FX_FORMAT_TEXT:
		base.add_text = add_text;
		break;
	case FX_FORMAT_MRD_SCAN:
		base.add_scan = add_scan;
		break;
	case FX_FORMAT_TCK:
	case FX_FORMAT_TRK:
	case FX_FORMAT_TRX:
		base.add_tracts = add_tracts;
		break;
	case FX_FORMAT_PNG:
		if (o->tracts)
			base.add_tracts = add_tracts;
		else
			base.add = add_image;
		break;
	default:
		base.add = add_image;
	}
	return base;
}

static int open_product(fxi_files *self, const fx_sink_options *options, fx_error *err, fxi_product **out)
{
	bool of_tracts = options->format == FX_FORMAT_TCK || options->format == FX_FORMAT_TRK ||
		options->format == FX_FORMAT_TRX;
	struct product *p;

	*out = NULL;
	if (options->format == FX_FORMAT_MRD_SCAN && !options->header_xml)
		return fx_error_set(err, FX_EINVAL, "%s: opened without a header", options->name);
	if (of_tracts && !options->tracts)
		return fx_error_set(err, FX_EINVAL, "%s: opened without what its tracts share", options->name);
	p = g_new0(struct product, 1);
	p->base = product_of(options);
	p->files = (struct harness_files *)self;
	p->keeps.options = *options;
	p->keeps.options.header_xml = g_strdup(options->header_xml);
	if (options->tracts)
		p->keeps.options.tracts = g_memdup2(options->tracts, sizeof *options->tracts);
	p->keeps.name = g_strdup(options->name);
	*out = &p->base;
	return FX_OK;
}

static int read_table(fxi_files *self, const char *path, fx_error *err, fx_array **values, fx_array **lengths)
{
	(void)self;
	return fxi_table_read(path, err, values, lengths);
}

static int read_nifti(fxi_files *self, const char *path, fx_error *err, fx_array **data, double affine[3][4],
	bool *has_affine)
{
	fxi_nifti_info info;
	int status = fxi_nifti_read(path, err, data, &info);

	(void)self;
	memcpy(affine, info.affine, sizeof info.affine);
	*has_affine = info.has_affine;
	return status;
}

void harness_files_init(struct harness_files *files, harness *h, pthread_mutex_t *lock)
{
	*files = (struct harness_files){
		.base = {.open = open_product, .read_table = read_table, .read_nifti = read_nifti}, .h = h, .lock = lock,
	};
}

const harness_product *harness_find_product(const harness *h, const char *name)
{
	for (int64_t i = h->n_products - 1; i >= 0; i--)
		if (strcmp(h->products[i].name, name) == 0)
			return &h->products[i];
	return NULL;
}
